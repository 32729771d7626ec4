"""The drawing of TFLOP/s against size."""

import xml.etree.ElementTree as ElementTree

import plot

VARIANTS = {"rows": [{"shape": [256, 256, 256], "us": {"cublas": 4.0, "chosen": 2.0}}, {"shape": [1, 8, 8], "us": {}}]}
LARGE = {
    "rows": [
        {"shape": "512x512x512", "dtype": "bf16", "layout": "tn", "contender": name, "TFLOP/s, rest": speed}
        for name, speed in (("cublas", 60.0), ("ptxdsl", 80.0), ("another", 1.0))
    ]
}


def test_square_products_of_both_kinds_of_results_are_shown():
    assert plot.series([VARIANTS, LARGE]) == {
        "ptxdsl": {256: 2e-6 * 256**3 / 2, 512: 80.0},
        "cublas": {256: 2e-6 * 256**3 / 4, 512: 60.0},
    }


def test_the_drawing_has_a_line_for_each_contender():
    drawing = ElementTree.fromstring(plot.svg(plot.series([VARIANTS, LARGE])))
    lines = drawing.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points").split()) for line in lines] == [2, 2]
    texts = [text.text for text in drawing.findall("{http://www.w3.org/2000/svg}text")]
    assert {"ptxdsl, 80", "cublas, 60", "wgmma alone, 889"} <= {*texts}
