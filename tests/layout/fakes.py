"""Stand-ins for traced registers."""


class Traced:
    """A value that notes each operation applied to it, and computes it on `number`."""

    def __init__(self, number, text="x", count=0):
        self.number, self.text, self.count = number, text, count

    def __repr__(self):
        return self.text

    def _apply(self, sign, other, compute):
        other = other if isinstance(other, Traced) else Traced(other, str(other))
        number = compute(self.number, other.number)
        return Traced(number, f"({self.text}{sign}{other.text})", self.count + other.count + 1)

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
