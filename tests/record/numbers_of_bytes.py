"""Variable-length numbers with seven bits per byte, as in protocol buffers and truth files."""


class Numbers:
    def __init__(self, data):
        self.data, self.at = data, 0

    def __bool__(self):
        """Whether any bytes are left."""
        return self.at < len(self.data)

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]
