"""What tests of the package share."""


def raises(kind, call, *words):
    """The error of this kind that a call raises, with all of these words."""
    try:
        call()
    except kind as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"{missing} not in {error}"
        return error
    raise AssertionError(f"{kind.__name__} was expected, {words}")
