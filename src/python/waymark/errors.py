"""Exceptions. Each has what an error of the C++ and C interfaces has: a status, a message, an offset."""


class Error(Exception):
    """What went wrong: `message` names the file, what was found, what was expected, and what to do.

    status: the number of the C interface (wm_status); offset: a position in the file that the message names, or None.
    """

    def __init__(self, message, status=8, offset=None):
        super().__init__(message)
        self.message = message
        self.status = status
        self.offset = offset

    def __str__(self):
        return self.message

    def __reduce__(self):
        return type(self), (self.message, self.status, self.offset)


class UsageError(Error, ValueError):
    """The call is invalid: an argument, an option, the order of calls."""


class NotFoundError(Error, LookupError):
    """There is no such file, source, table or symbol, or nothing could be decoded."""


class UnreadableError(Error, OSError):
    """The operating system refused, or a compressed file is damaged."""


class FormatError(Error, ValueError):
    """A file is not what it should be."""


class UnsupportedError(Error, NotImplementedError):
    """Well-formed, but of a kind that Waymark does not know."""


class CancelledError(Error):
    """Decoding was cancelled."""
