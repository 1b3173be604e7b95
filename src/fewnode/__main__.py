"""`fewnode` and `python -m fewnode`: the first line that runs, so that an interrupt is quiet from the first moment."""

import os
import signal


def main() -> None:
    """The command line. An interrupt ends it with 130, whatever is going on: imports, a command, the way out."""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a shell can have it ignored
    if heeded:
        signal.signal(signal.SIGINT, _leave)
    from fewnode.cli import INTERRUPTED, UNREAD
    from fewnode.cli import main as run

    try:
        if heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # so that what is half done is cleared away
        run()
    except KeyboardInterrupt:
        _leave()
    except SystemExit as end:
        if heeded:
            signal.signal(signal.SIGINT, _leave)
        if end.code in (INTERRUPTED, UNREAD):
            os._exit(end.code)  # Python would wait for threads, and end itself by the signal once more
        raise


def _leave(*_: object) -> None:
    os._exit(130)


if __name__ == "__main__":
    main()
