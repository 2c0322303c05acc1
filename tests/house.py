"""Shared by the checks of the repository's rules: their command line, and small trees to try them on."""
import pathlib
import sys
import tempfile


def run_cases(cases):
    """Each case: files of a tree by name, a check of the tree that returns violations, and a part of the one violation
    expected; None: none. Returns the exit status."""
    count = failures = 0
    for files, check, message in cases:
        count += 1
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            wrong = check(root)
        if wrong if message is None else len(wrong) != 1 or message not in wrong[0]:
            failures += 1
            print(f"case {count}: expected {message or 'no violation'}, got {wrong}")
    print(f"{count - failures} of {count} cases as expected")
    return 1 if failures else 0


def main(usage, check, self_test):
    """`check(root)`: the number of checked files, and the violations."""
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(usage, file=sys.stderr)
        return 2
    count, wrong = check(pathlib.Path(arguments[0]))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if count == 0:
        print("no source file found: nothing was checked")
        return 1
    print(f"{count} files checked, {len(wrong)} violations")
    return 1 if wrong else 0
