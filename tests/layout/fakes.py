"""Stand-ins for traced registers."""


class Traced:
    """A register with a known `number`; `log` gets every operation that it and its results take part in."""

    def __init__(self, number, text="x", log=None):
        self.number, self.text, self.log = number, text, [] if log is None else log

    def __repr__(self):
        return self.text

    def _apply(self, sign, other, compute):
        other = other if isinstance(other, Traced) else Traced(other, str(other))
        result = Traced(compute(self.number, other.number), f"({self.text}{sign}{other.text})", self.log)
        self.log.append(result.text)
        return result

    def __add__(self, other):
        return self._apply("+", other, lambda a, b: a + b)

    def __mul__(self, other):
        return self._apply("*", other, lambda a, b: a * b)

    def __floordiv__(self, other):
        return self._apply("//", other, lambda a, b: a // b)

    def __mod__(self, other):
        return self._apply("%", other, lambda a, b: a % b)

    def __and__(self, other):
        return self._apply("&", other, lambda a, b: a & b)

    def __xor__(self, other):
        return self._apply("^", other, lambda a, b: a ^ b)

    def __rshift__(self, other):
        return self._apply(">>", other, lambda a, b: a >> b)

    def __lshift__(self, other):
        return self._apply("<<", other, lambda a, b: a << b)

    def __bool__(self):
        raise AssertionError("a traced value has no truth value")

    def __eq__(self, other):
        raise AssertionError("a traced value is not compared")

    __hash__ = None
