"""The playground as a reader meets it: before, while and after its model is loaded."""

import json
import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from book_server import Server
from visit import PATIENCE, PHONE, Visitor, comes_to, resize, set_theme, settle

from bertology_utils import playground
from bertology_utils.encoder import Encoder
from bertology_utils.stimuli import passages
from tools import sphinx_playground

PAGE = "chapters/playground.html"
#: milliseconds for loading and unfolding the model on a busy machine
LOADING = 180_000
#: the address of the model that the page fetches
MODEL = re.compile(r"model\.onnx")
#: masks that are filled both by PyTorch and by the page
CASES = 200


@dataclass
class Play:
    """The page, and short ways to use it."""

    page: object
    seen: object

    def part(self, name: str):
        return self.page.locator(f"[data-pg='{name}']")

    def type(self, text: str) -> None:
        """Put a text in and wait until the page has answered, or has said why not."""
        before = self.page.evaluate_handle("bertologyPlayground.page.state.tokens")
        self.page.fill("#pg-text", text)
        # Typing is followed after a pause: the text is cut up anew, even if it is the same.
        self.page.wait_for_function(
            "before => bertologyPlayground.page.state.tokens !== before", arg=before
        )
        self.rest()

    def rest(self) -> None:
        """Wait until no answer is under way; the page says that it is at work until it is done."""
        self.page.wait_for_function(
            "document.getElementById('pg-root').getAttribute('aria-busy') !== 'true'"
        )

    def tokens(self) -> list[str]:
        return self.part("tokens").locator("button").all_inner_texts()

    def choose(self, token: str) -> None:
        index = self.tokens().index(token)
        self.part("tokens").locator("button").nth(index).click()
        self.page.wait_for_function(
            "index => bertologyPlayground.page.state.chosen === index", arg=index
        )
        self.rest()

    def answers(self, part: str, table: int = 0) -> list[str]:
        rows = self.part(part).locator("table").nth(table).locator("tbody th")
        return rows.all_inner_texts()

    def status(self) -> str:
        return self.part("status").inner_text()


def open_page(visitor: Visitor, name: str = PAGE, **options) -> Play:
    play = Play(*visitor.open(name, **options))
    if options.get("java_script_enabled", True):
        settle(play.page)  # the drawing takes the width of its place a frame later
    return play


def check_quiet(play: Play) -> None:
    """Whatever a test did: nothing in the console, nothing asked of another host."""
    assert play.seen.console == play.seen.outside == play.seen.failed == []


@pytest.fixture
def fresh(visitor: Visitor) -> Iterator[Play]:
    """The page as it opens, without the model."""
    play = open_page(visitor)
    yield play
    check_quiet(play)
    play.page.context.close()


@pytest.fixture(scope="module")
def once_loaded(visitor: Visitor) -> Iterator[Play]:
    """The page after its button was pressed."""
    play = open_page(visitor)
    assert play.seen.loaded_bytes < 3_000_000
    # The model is held back until it was seen that the page is waiting for it.
    held = []
    play.page.route(MODEL, lambda route: held.append(route))
    play.part("load").click()
    play.part("progress").wait_for()
    assert play.part("load").is_disabled()
    (model,) = comes_to(play.page, lambda: list(held), lambda asked: len(asked) == 1)
    assert play.part("progress").is_visible()
    model.fallback()
    play.page.wait_for_function(
        "/ready|could not/.test(document.querySelector('[data-pg=status]').textContent)",
        timeout=LOADING,
    )
    assert "ready" in play.status(), play.status()
    yield play
    play.page.context.close()


@pytest.fixture
def loaded(once_loaded: Play) -> Iterator[Play]:
    """The loaded page; the tests share it, and type their own texts."""
    yield once_loaded
    check_quiet(once_loaded)


# --- before loading ---------------------------------------------------------------------------
def test_the_page_is_never_an_empty_box(fresh: Play):
    assert "[MASK]" in fresh.page.input_value("#pg-text")
    assert fresh.tokens()[0] == "[CLS]" and fresh.tokens()[-1] == "[SEP]"
    assert len(fresh.answers("fills")) == 8
    assert fresh.part("attention").locator("svg line").count() > 10
    assert len(fresh.answers("near", 0)) == 7 and len(fresh.answers("near", 1)) == 8
    offer = fresh.part("load").inner_text()
    assert re.fullmatch(r"Load the model \(\d+ MB, and \d+ MB to run it\)", offer)


def test_the_example_lets_readers_look_at_every_head_token_and_layer(fresh: Play):
    before = fresh.part("attention").inner_html()
    fresh.part("head").select_option(label="6")
    fresh.part("layer").select_option(label="2")
    assert fresh.part("said").inner_text().startswith("In layer 2, head 6, ")
    assert fresh.part("attention").inner_html() != before
    near = fresh.part("near").inner_text()
    fresh.part("depth").fill("0")
    assert "before layer 1" in fresh.part("near").inner_text() != near
    fresh.choose("capital")
    assert "Nearest to “capital”" in fresh.part("near").inner_text()
    assert "“capital” attends most" in fresh.part("said").inner_text()


def test_typing_shows_pieces_at_once_and_says_what_is_missing(fresh: Play):
    fresh.type("Tokenization! 😀")
    assert fresh.tokens() == ["[CLS]", "token", "##ization", "!", "[UNK]", "[SEP]"]
    assert "1 of them [UNK]" in fresh.part("counted").inner_text()
    assert "Not computed yet" in fresh.part("fills").inner_text()
    fresh.part("attention").get_by_text("back to the example").click()
    assert len(fresh.answers("fills")) == 8


def test_the_tokens_are_those_of_the_python_tokenizer(fresh: Play, embedded: Encoder):
    texts = difficult_texts()
    expected = [embedded.tokenizer(text)["input_ids"] for text in texts]
    found = fresh.page.evaluate(
        """texts => {
          const { WordPiece, vocabulary } = bertologyPlayground;
          const wordpiece = new WordPiece(vocabulary);
          return texts.map((text) => wordpiece.encode(text).map(({ id }) => id));
        }""",
        texts,
    )
    wrong = [text for text, a, b in zip(texts, found, expected, strict=True) if a != b]
    assert wrong == []


def difficult_texts() -> list[str]:
    """Every character once between letters, and sentences with odd things thrown in."""
    rng = random.Random(1)
    characters = [chr(p) for p in range(0x32400) if not 0xD800 <= p <= 0xDFFF]
    characters += [chr(p) for p in (*range(0xE0000, 0xE0200), *range(0x32400, 0x110000, 0x333))]
    texts = ["".join(f" a{c}b" for c in characters[i : i + 64])
             for i in range(0, len(characters), 64)]  # fmt: skip
    odd = ["[MASK]", "[SEP]", "[mask]", "[", "]", "\u0301", "\u00df", "Σ", "ΑΣ", "İ", "漢", "한"]
    odd += ["\u200b", "\xad", "😀", "\u1e9b\u0323", "\x00", "\x85"]
    odd += ["x" * n for n in (99, 100, 101)]
    for passage in passages():
        for sentence in passage.sentences:
            letters = list(sentence)
            for _ in range(5):
                thing = rng.choice([rng.choice(odd), rng.choice(characters)])
                letters.insert(rng.randrange(len(letters) + 1), thing)
            texts += [sentence, "".join(letters)]
    return [*texts, "", " ", "\n\t", "[MASK][MASK]", "a[MASK]b"]


def test_pieces_know_where_they_stand_in_the_text(fresh: Play):
    text = "Tökenization [MASK] 漢字, naïve 😀 don't"
    spans = fresh.page.evaluate(
        """text => {
          const { WordPiece, vocabulary } = bertologyPlayground;
          return new WordPiece(vocabulary).pieceUp(text)
            .map(({ piece, start, end }) => [piece, text.slice(start, end)]);
        }""",
        text,
    )
    assert spans == [
        ["token", "Töken"], ["##ization", "ization"], ["[MASK]", "[MASK]"],
        *([piece, character] for (piece, _), character in zip(spans[3:5], "漢字", strict=True)),
        [",", ","], ["naive", "naïve"], ["[UNK]", "😀"], ["don", "don"], ["'", "'"], ["t", "t"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("delete globalThis.WebAssembly", "no WebAssembly"),
        ("delete globalThis.Worker", "too old"),
    ],
)
def test_a_browser_that_cannot_run_the_model_is_told_so(visitor: Visitor, script, message):
    play = open_page(visitor)
    try:
        play.page.add_init_script(script)
        play.page.reload()
        assert message in play.status() and play.part("load").is_disabled()
        assert len(play.answers("fills")) == 8
        play.type("Hello there.")
        assert play.tokens()[1:3] == ["hello", "there"]
        assert "Not computed" not in play.part("fills").inner_text()
        assert play.seen.console == []
    finally:
        play.page.context.close()


def test_pages_built_without_the_runtime_say_so(visitor: Visitor):
    play = open_page(visitor)
    try:
        play.page.route(
            re.compile(r"playground/build\.js"),
            lambda route: route.fulfill(
                content_type="text/javascript",
                body="(self.bertologyPlayground??={}).build={runtime:null,model:true};",
            ),
        )
        play.page.reload()
        assert "without a connection to the package registry" in play.status()
        assert play.part("load").is_disabled() and len(play.answers("fills")) == 8
    finally:
        play.page.context.close()


def test_a_page_opened_as_a_file_shows_the_example_and_says_what_to_do(book: Path, browser):
    context = browser.new_context(color_scheme="light")
    said = []
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else 0)
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        page.goto((book / PAGE).as_uri())
        play = Play(page, None)
        assert "opened as a file" in play.status() and "make serve" in play.status()
        assert len(play.answers("fills")) == 8
        play.type("It works.")
        assert play.tokens() == ["[CLS]", "it", "works", ".", "[SEP]"]
        assert said == []
    finally:
        context.close()


def test_a_failed_download_can_be_tried_again(visitor: Visitor):
    play = open_page(visitor)
    try:
        play.page.route(MODEL, lambda route: route.fulfill(status=503))
        play.part("load").click()
        play.page.get_by_text("could not be loaded").wait_for(timeout=LOADING)
        assert "503" in play.status() and play.part("load").inner_text() == "Try again"
        assert play.part("load").is_enabled()
    finally:
        play.page.context.close()


def test_a_model_of_another_build_is_refused(visitor: Visitor):
    play = open_page(visitor)
    try:
        play.page.route(MODEL, lambda route: route.fulfill(body="not a model"))
        play.part("load").click()
        play.page.get_by_text("could not be loaded").wait_for(timeout=LOADING)
        assert "damaged" in play.status()
    finally:
        play.page.context.close()


def test_without_scripts_the_example_is_there_as_tables(visitor: Visitor):
    play = open_page(visitor, java_script_enabled=False)
    try:
        text = play.page.locator("#pg-root").inner_text()
        assert "needs JavaScript" in text and "Load the model" not in text
        assert play.part("fills").locator("tbody tr").count() == 8
        assert play.part("attention").locator("table tbody tr").count() > 5
    finally:
        play.page.context.close()


# --- in Chinese -------------------------------------------------------------------------------
#: a text or label that a reader meets in the panel, the language that it is said to be in, and
#: whether the model has guessed it
SPOKEN = """() => {
  const root = document.getElementById("pg-root");
  const found = [];
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const { data, parentElement } = walk.currentNode;
    const guess = parentElement.closest('[data-pg="fills"] tbody, [data-pg="near"] tbody');
    if (!parentElement.closest("script, noscript"))
      found.push([data.trim(), parentElement.closest("[lang]").lang, guess !== null]);
  }
  for (const one of root.querySelectorAll("[aria-label], [title]"))
    for (const name of ["aria-label", "title"])
      if (one.hasAttribute(name)) found.push([one.getAttribute(name), root.lang, false]);
  return found;
}"""
NAMES = re.compile(r"\[(CLS|SEP|MASK|UNK)\]|“[^”]*”|\b(MB|JavaScript|make serve)\b")


def check_chinese(play: Play) -> None:
    """Nothing of the panel is in English but what is marked so, and names."""
    spoken = play.page.evaluate(SPOKEN)
    assert len(spoken) > 40
    left = [text for text, said, _ in spoken if said == "zh-CN"
            and re.search("[A-Za-z]{2}", NAMES.sub("", text))]  # fmt: skip
    assert left == []
    # A guess is a piece of the model's vocabulary, which has pieces in many scripts.
    assert [text for text, said, guess in spoken if said == "en" and not guess
            and re.search("[\u4e00-\u9fff]", text)] == []  # fmt: skip


@pytest.fixture
def chinese(visitor: Visitor) -> Iterator[Play]:
    play = open_page(visitor, name=f"zh/{PAGE}")
    yield play
    play.page.context.close()


def test_the_chinese_page_speaks_chinese(chinese: Play):
    assert chinese.page.locator("#pg-root").get_attribute("lang") == "zh-CN"
    offer = chinese.part("load").inner_text()
    assert re.fullmatch(r"载入模型（\d+ MB，另需 \d+ MB 用于运行）", offer)
    chinese.part("numbers").locator("summary").click()
    chinese.part("matrix").locator("td").first.wait_for()
    check_chinese(chinese)
    chinese.part("layer").select_option(label="2")
    assert chinese.part("said").inner_text().startswith("在第 2 层的第 ")
    chinese.part("depth").fill("0")
    assert "第 1 层之前" in chinese.part("near").inner_text()
    for text, part, said in (
        ("", "problem", "请输入一个句子"),
        ("word " * 127, "problem", "129 个词片"),
        ("😀", "counted", "1 个是词表拼不出来的"),
    ):
        chinese.type(text)
        assert said in chinese.part(part).inner_text()
        check_chinese(chinese)
    chinese.part("attention").get_by_text("回到例子").click()
    assert len(chinese.answers("fills")) == 8
    chinese.choose("[CLS]")
    chinese.part("hide").click()
    assert "不能遮住" in chinese.part("problem").inner_text()
    check_chinese(chinese)
    check_quiet(chinese)


def test_the_chinese_page_says_in_chinese_why_the_model_is_missing(chinese: Play):
    chinese.page.route(MODEL, lambda route: route.fulfill(status=503))
    chinese.part("load").click()
    chinese.page.get_by_text("模型未能载入").wait_for(timeout=LOADING)
    assert "服务器的回应是 503" in chinese.status() and chinese.part("load").inner_text() == "重试"
    check_chinese(chinese)


def test_without_scripts_the_chinese_page_says_so_in_chinese(visitor: Visitor):
    play = open_page(visitor, java_script_enabled=False, name=f"zh/{PAGE}")
    try:
        assert "需要 JavaScript" in play.page.locator("#pg-root").inner_text()
        assert play.part("fills").get_attribute("lang") == "en"
    finally:
        play.page.context.close()


# --- with the model ---------------------------------------------------------------------------
def test_a_mask_is_filled_with_pytorchs_words(loaded: Play, embedded: Encoder):
    text = "The cat sat on the [MASK] and slept."
    loaded.type(text)
    ids = embedded.tokenizer(text)["input_ids"]
    case = playground.Case(tuple(ids), ids.index(103))
    (best,) = playground.best_pieces(embedded, [case])
    assert set(embedded.tokenizer.convert_ids_to_tokens(list(best))) <= set(loaded.answers("fills"))
    shares = loaded.part("fills").locator("tbody td:nth-child(2)").all_inner_texts()
    first = float(shares[0].removesuffix(" %")) / 100
    assert first == pytest.approx(max(best.values()), abs=0.02)


def test_the_page_answers_as_pytorch_in_nineteen_of_twenty_cases(loaded: Play, embedded: Encoder):
    sentences = [sentence for passage in passages() for sentence in passage.sentences]
    cases = playground.mask_cases(embedded, sentences, per_text=1)[:CASES]
    answers = loaded.page.evaluate(
        """async ([cases, layers]) => {
          const found = [];
          for (const { ids, place } of cases) {
            const answer = await bertologyPlayground.page.question(
              { ids, places: [[layers, place]], alike: [], k: 5 });
            found.push(answer.read[0]);
          }
          return found;
        }""",
        [[{"ids": list(c.input_ids), "place": c.place} for c in cases], embedded.n_layers],
    )
    agreement = playground.compare(
        embedded.name,
        playground.best_pieces(embedded, cases),
        [{int(piece): p for piece, p in answer} for answer in answers],
    )
    assert agreement.n == CASES
    # A share of 95 % or more, as far as this many cases can tell.
    assert agreement.interval[1] >= 0.95 and agreement.same >= 0.93, agreement
    assert agreement.same_first >= 0.95, agreement


def test_attention_is_pytorchs(loaded: Play, embedded: Encoder):
    text = "The keys to the cabinet are on the table."
    loaded.type(text)
    found = loaded.page.evaluate(
        "[3, 7].map((head) => bertologyPlayground.page.weightsOf("
        "bertologyPlayground.page.state.result, 4, head))"
    )
    ids = torch.tensor([embedded.tokenizer(text)["input_ids"]])
    with torch.no_grad():
        whole = embedded.base(ids, output_attentions=True).attentions[4][0, [3, 7]].numpy()
    assert np.abs(np.array(found) - whole).max() < 0.05
    loaded.part("layer").select_option(label="5")
    loaded.part("head").select_option(label="8")
    loaded.choose("keys")
    row = whole[1][2]
    best = loaded.tokens()[int(row.argmax())]
    assert f"“keys” attends most to “{best}” (" in loaded.part("said").inner_text()
    loaded.part("numbers").locator("summary").click()
    numbers = loaded.part("matrix").locator("tbody tr").nth(2)
    numbers.wait_for()
    cells = numbers.locator("td").all_inner_texts()
    np.testing.assert_allclose([int(cell) for cell in cells], 100 * row, atol=5.5)
    loaded.part("numbers").locator("summary").click()


def test_nearest_words_are_the_nearest_rows_of_the_table(loaded: Play, embedded: Encoder):
    loaded.type("She plays the piano.")
    loaded.choose("piano")
    table = torch.nn.functional.normalize(embedded.embeddings.token.weight.detach(), dim=1)
    number = embedded.tokenizer.convert_tokens_to_ids("piano")
    best = (table @ table[number]).topk(8).indices.tolist()
    expected = [p for p in embedded.tokenizer.convert_ids_to_tokens(best) if p != "piano"]
    found = loaded.answers("near", 0)
    assert len(found) == 7 and len(set(found) & set(expected)) >= 6
    assert "piano" not in found
    loaded.part("depth").fill("0")
    first = loaded.answers("near", 1)
    loaded.part("depth").fill("6")
    assert loaded.answers("near", 1) != first and loaded.answers("near", 1)[0] == "piano"


def test_several_masks_have_a_list_each_and_none_has_advice(loaded: Play):
    loaded.type("A [MASK] is a kind of [MASK].")
    captions = loaded.part("fills").locator("caption").all_inner_texts()
    assert captions == ["For [MASK] number 1", "For [MASK] number 2"]
    assert loaded.answers("fills", 0) != loaded.answers("fills", 1)
    loaded.type("A robin is a bird.")
    assert "No [MASK] in this sentence" in loaded.part("fills").inner_text()
    loaded.type("A robin is a [mask].")
    assert "(in capitals)" in loaded.part("fills").inner_text()


def test_a_token_can_be_hidden_and_a_mask_inserted(loaded: Play):
    loaded.type("A robin is a small bird.")
    loaded.choose("small")
    loaded.part("hide").click()
    loaded.page.wait_for_function(
        "document.querySelector('[data-pg=fills] table') !== null"
    )
    assert loaded.page.input_value("#pg-text") == "A robin is a [MASK] bird."
    loaded.choose("[CLS]")
    loaded.part("hide").click()
    assert "cannot be hidden" in loaded.part("problem").inner_text()
    loaded.type("Birds can")
    loaded.page.evaluate("document.getElementById('pg-text').setSelectionRange(9, 9)")
    loaded.part("mask").click()
    assert loaded.page.input_value("#pg-text") == "Birds can [MASK]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "type a sentence"),
        ("  \n", "type a sentence"),
        ("word " * 127, "129 pieces"),
        ("word " * 600, "602 pieces"),
    ],
)
def test_bad_input_gets_a_reason_and_the_page_goes_on(loaded: Play, text, message):
    loaded.type(text)
    assert message in loaded.part("problem").inner_text()
    assert loaded.part("fills").inner_text().strip() != ""
    loaded.type("It goes on with [MASK].")
    assert loaded.part("problem").is_hidden() and len(loaded.answers("fills")) == 8


def test_the_longest_text_is_computed(loaded: Play):
    loaded.type("word " * 125 + "[MASK]")
    assert len(loaded.tokens()) == 128
    assert len(loaded.answers("fills")) == 8


def test_what_is_typed_is_text_and_never_markup(loaded: Play):
    loaded.type("<img src=x onerror=alert(1)> & <b>[MASK]</b> 😀")
    assert loaded.page.locator("#pg-root img, #pg-root b").count() == 0
    assert "<" in loaded.tokens() and "[UNK]" in loaded.tokens()
    assert len(loaded.answers("fills")) == 8


def test_fast_typing_ends_with_the_last_text(loaded: Play):
    loaded.page.fill("#pg-text", "")
    loaded.page.locator("#pg-text").press_sequentially("Paris is in [MASK].", delay=20)
    loaded.page.wait_for_function(
        "bertologyPlayground.page.state.result?.text === 'Paris is in [MASK].'"
    )
    loaded.rest()
    assert loaded.tokens() == ["[CLS]", "paris", "is", "in", "[MASK]", ".", "[SEP]"]


def test_everything_can_be_worked_by_keyboard(loaded: Play):
    loaded.type("Dogs chase cats.")
    page = loaded.page
    page.focus("#pg-text")
    order = []
    for _ in range(12):
        page.keyboard.press("Tab")
        order.append(
            page.evaluate(
                "document.activeElement.dataset.pg || document.activeElement.getAttribute('role')"
                " || document.activeElement.tagName"
            )
        )
    for name in ("mask", "hide", "examples", "radio", "layer", "head", "depth"):
        assert name in order, order
    chosen = loaded.part("tokens").locator("[aria-checked='true']")
    chosen.focus()
    page.keyboard.press("Home")
    assert chosen.inner_text() == "[CLS]"
    page.keyboard.press("ArrowRight")
    assert chosen.inner_text() == "dogs"
    assert page.evaluate("document.activeElement.textContent") == "dogs"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert chosen.inner_text() == "[SEP]"
    page.focus("#pg-layer")
    page.keyboard.press("Home")
    assert "In layer 1, " in loaded.part("said").inner_text()


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_working_page_can_be_read(loaded: Play, visitor: Visitor, theme: str):
    loaded.type("The [MASK] barked at the cat.")
    set_theme(loaded.page, theme)
    assert loaded.page.evaluate("bertologyLook.faint()") == []
    assert visitor.axe_findings(loaded.page) == []


def test_nothing_sticks_out_on_a_phone(loaded: Play):
    loaded.type("Antidisestablishmentarianism is a very [MASK] word, Donaudampfschifffahrt too.")
    before = loaded.page.viewport_size
    resize(loaded.page, PHONE, 800)
    try:
        assert loaded.page.evaluate("bertologyLook.overflow()") == []
        drawing = loaded.part("attention").locator("svg").bounding_box()
        assert drawing["x"] >= 0 and drawing["x"] + drawing["width"] <= PHONE
    finally:
        resize(loaded.page, **before)


# --- where the pages lie ----------------------------------------------------------------------
def test_any_host_will_do(book: Path, browser, tmp_path):
    """A host that knows neither .wasm nor .mjs, in another folder: nothing may depend on either."""
    shutil.copytree(book, tmp_path / "deep" / "er", ignore=shutil.ignore_patterns("zh"))
    with Server(tmp_path) as server:
        visitor = Visitor(browser, server)
        play = Play(*visitor.open("deep/er/" + PAGE))
        play.page.route(
            re.compile(r"\.(wasm|onnx)"),
            lambda route: route.fulfill(
                response=route.fetch(timeout=LOADING),
                headers={"content-type": "application/octet-stream"},
            ),
        )
        play.part("load").click()
        play.page.get_by_text("The model is ready").wait_for(timeout=LOADING)
        play.type("It runs [MASK] too.")
        assert len(play.answers("fills")) == 8
        assert play.seen.console == play.seen.outside == []
        play.page.context.close()


def test_the_files_are_those_of_the_build(book: Path):
    folder = book / "_static" / "playground"
    assert (folder / "model.onnx").stat().st_size <= playground.LARGEST_MODEL
    runtime = {path.name for path in (folder / "runtime").iterdir()}
    assert set(sphinx_playground.RUNTIME_FILES.values()) <= runtime
    assert {"LICENSE.txt", "ThirdPartyNotices.txt"} <= runtime
    build = json.loads((folder / "build.js").read_text().partition("build=")[2].rstrip(";\n"))
    assert build["model"] and build["runtime"]["version"] == sphinx_playground.VERSION
