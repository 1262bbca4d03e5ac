"""How training steps are found where the trace does not number them: what repeats, on all ranks alike."""

from collections.abc import Sequence

import pytest

from traceforge.align.rank_trace import Annotation, RankTrace, Step
from traceforge.align.step import steps_of_run


def annotated(
    *spans: tuple[str, int, int], calls: Sequence[tuple[str, int]] = (), window: tuple[int, int]
) -> RankTrace:
    """A rank with annotations (name, start, end), calls (token, issue) and a window."""
    annotations = [Annotation(name, name.startswith("ProfilerStep"), start, end) for name, start, end in spans]
    return RankTrace(*window, annotations, calls)


def spans_of(steps: Sequence[Step]) -> list[tuple[int, int, int, bool]]:
    return [(step.iteration, step.start_ns, step.end_ns, step.is_whole) for step in steps]


def test_profiler_steps_win_each_number_once_and_a_rank_without_them_has_its_window() -> None:
    # given rank 0 with a copy of step 4 on another thread, rank 1 with an annotation only, rank 2 with nothing at all
    marked = annotated(
        ("ProfilerStep#5", 50, 90), ("ProfilerStep#4", 0, 50), ("ProfilerStep#4", 10, 60), window=(0, 99)
    )
    unmarked = annotated(("train", 0, 20), ("train", 20, 40), ("train", 40, 60), window=(5, 70))

    origin, steps = steps_of_run({0: marked, 1: unmarked, 2: RankTrace(8, 8, [], [])})

    assert origin == "profiler_step"
    assert spans_of(steps[0]) == [(4, 0, 50, True), (5, 50, 90, True)]
    assert spans_of(steps[1]) == [(0, 5, 70, True)]
    assert steps[2] == []


class TestAnnotation:
    """An annotation that every rank has, that follows itself and fills the time, is a step."""

    def test_the_one_that_covers_most_time_is_taken(self) -> None:
        # train   |0–––––––20|20––––––40|40––––––60|
        # inner       |8–––20|   |28––40|   |48––60|
        inner, train = [(8, 20), (28, 40), (48, 60)], [(0, 20), (20, 40), (40, 60)]
        trace = annotated(*(("inner", *at) for at in inner), *(("train", *at) for at in train), window=(0, 60))

        origin, steps = steps_of_run({0: trace, 1: trace})

        assert origin == "annotation"
        assert spans_of(steps[0]) == [(0, 0, 20, True), (1, 20, 40, True), (2, 40, 60, True)]

    def test_annotations_that_count_are_steps_with_their_numbers(self) -> None:
        # given `step 7`, `step 8`, `step 9`, and two layers in each, which count anew
        steps = [("step 7", 0, 20), ("step 8", 20, 40), ("step 9", 40, 60)]
        layers = [(f"layer {n % 2}", 10 * n, 10 * n + 10) for n in range(6)]
        trace = annotated(*steps, *layers, window=(0, 60))

        origin, found = steps_of_run({0: trace, 1: trace})

        assert origin == "annotation"
        assert spans_of(found[0]) == [(7, 0, 20, True), (8, 20, 40, True), (9, 40, 60, True)]
        assert {step.annotation for step in found[0]} == {"step #"}

    @pytest.mark.parametrize(("last", "origin"), [(9, "annotation"), (8, "window")], ids=["three", "two"])
    def test_ranks_whose_windows_are_cut_elsewhere_meet_in_the_numbers_that_they_share(
        self, last: int, origin: str
    ) -> None:
        # given steps 5 to 9 on rank 0, and 7 to 9, or 7 to 8, on rank 1
        spans = [(f"step {n}", 20 * n, 20 * n + 20) for n in range(5, 10)]
        whole, cut = annotated(*spans, window=(100, 200)), annotated(*spans[2 : last - 4], window=(140, 200))

        found_origin, found = steps_of_run({0: whole, 1: cut})

        assert found_origin == origin
        if origin == "annotation":
            assert [step.iteration for step in found[0]] == [5, 6, 7, 8, 9]
            assert [step.iteration for step in found[1]] == [7, 8, 9]

    def test_what_counts_anew_is_no_step(self) -> None:
        layers = [(f"layer {n % 3}", 10 * n, 10 * n + 10) for n in range(9)]

        origin, _ = steps_of_run({0: annotated(*layers, window=(0, 90))})

        assert origin == "window"

    @pytest.mark.parametrize(
        ("spans", "origin"),
        [
            # Two thirds of the time from first to last; half of it; less than half.
            ([(0, 20), (30, 50), (60, 80)], "annotation"),
            ([(0, 10), (15, 25), (50, 60)], "annotation"),
            ([(0, 10), (15, 25), (51, 61)], "window"),
            ([(900, 910), (915, 925), (950, 960)], "annotation"),
            # Occurrences that overlap, and too few of them.
            ([(0, 20), (19, 40), (40, 60)], "window"),
            ([(0, 20), (20, 40)], "window"),
        ],
    )
    def test_it_must_follow_itself_and_fill_half_of_the_time(self, spans: list[tuple[int, int]], origin: str) -> None:
        trace = annotated(*(("train", *span) for span in spans), window=(0, 1_000))

        assert steps_of_run({0: trace})[0] == origin

    @pytest.mark.parametrize(
        ("issued", "origin"),
        [
            # two calls in each |0–10|, |50–60|, |100–110|; half of them outside; one in each, as around single calls
            ([2, 8, 52, 58, 102, 108], "annotation"),
            ([2, 8, 30, 40, 52, 58, 80, 90, 102, 108], "window"),
            ([2, 52, 102], "window"),
        ],
    )
    def test_one_that_issues_the_calls_need_not_fill_the_time(self, issued: list[int], origin: str) -> None:
        spans = [("decode", at, at + 10) for at in (0, 50, 100)]
        trace = annotated(*spans, calls=[("a:4", at) for at in issued], window=(0, 150))

        assert steps_of_run({0: trace})[0] == origin

    def test_ranks_that_count_differently_have_no_steps_in_common(self) -> None:
        three = annotated(("train", 0, 20), ("train", 20, 40), ("train", 40, 60), window=(0, 60))
        four = annotated(*(("train", at, at + 20) for at in (0, 20, 40, 60)), window=(0, 80))

        origin, steps = steps_of_run({0: three, 1: four})

        assert origin == "window"
        assert spans_of(steps[1]) == [(0, 0, 80, True)]

    def test_a_name_that_one_rank_lacks_is_not_taken(self) -> None:
        own = annotated(*(("mine", at, at + 20) for at in (0, 20, 40)), window=(0, 60))
        other = annotated(*(("yours", at, at + 20) for at in (0, 20, 40)), window=(0, 60))

        assert steps_of_run({0: own, 1: other})[0] == "window"


# Names as engines write them; the first number of the second one is of tokens.
_VLLM = ["execute_context_1(512)_generation_0(0)"] + [f"execute_context_0(0)_generation_{n}({n})" for n in (8, 8, 7)]
_VLLM_NUMBERED = [
    f"execute_{n}_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk{80 + 4 * n}sqsq4sqsk{80 + 4 * n})" for n in (1, 2, 3)
]
_SGLANG = ["step[EXTEND bs=2 toks=107]", "step[DECODE bs=2]", "step[DECODE bs=1]"]
_TENSORRT = [f"[Executor] _forward_step {n}: {n % 2} ctx reqs, {n % 2 * 90} ctx tokens, 32 gen reqs" for n in (1, 2, 3)]


class TestBatches:
    """What an inference engine writes around each batch is a step, whatever sizes its name holds."""

    @pytest.mark.parametrize(
        ("names", "kinds"),
        [
            (_VLLM, ["execute_context_#(#)_generation_0(0)"] + ["execute_context_0(0)_generation_#(#)"] * 3),
            (_VLLM_NUMBERED, ["execute_#_context_0(sq0sk0sqsq0sqsk0)_generation_#(sq#sk#sqsq#sqsk#)"] * 3),
            (_SGLANG, ["step[EXTEND bs=# toks=#]", "step[DECODE bs=#]", "step[DECODE bs=#]"]),
            (
                _TENSORRT,
                [f"[Executor] _forward_step #: {n} ctx reqs, {n} ctx tokens, # gen reqs" for n in ("#", "0", "#")],
            ),
        ],
    )
    def test_each_is_a_step_of_its_kind_though_it_fills_little_of_the_time(
        self, names: list[str], kinds: list[str]
    ) -> None:
        # batch |0–5|      |100–105|      |200–205|      and as many layers, which cover more
        spans = [(name, 100 * n, 100 * n + 5) for n, name in enumerate(names)]
        layers = [("layer", 100 * n, 100 * n + 50) for n in range(len(names))]
        trace = annotated(*spans, *layers, window=(0, 100 * len(names)))

        origin, steps = steps_of_run({0: trace, 1: trace})

        assert origin == "annotation"
        assert [step.annotation for step in steps[1]] == kinds
        assert spans_of(steps[0])[1] == (1, 100, 200, True)

    def test_batches_that_overlap_are_of_two_engines_and_mark_nothing(self) -> None:
        spans = [("step[DECODE bs=1]", at, at + 20) for at in (0, 10, 40)]

        assert steps_of_run({0: annotated(*spans, window=(0, 60))})[0] == "window"


class TestOptimizer:
    """From the end of one Optimizer.step to the end of the next."""

    def test_steps_end_with_it_and_the_first_begins_with_the_window(self) -> None:
        # Its own occurrences fill less than half of the time.
        spans = [("Optimizer.step#SGD.step", at, at + 10) for at in (90, 190, 290)]

        origin, steps = steps_of_run({0: annotated(*spans, window=(5, 350))})

        assert origin == "optimizer"
        assert spans_of(steps[0]) == [(0, 5, 100, True), (1, 100, 200, True), (2, 200, 300, True)]

    def test_one_that_ended_as_the_window_began_is_no_step(self) -> None:
        spans = [("Optimizer.step#SGD.step", at, at + 10) for at in (90, 190, 290, 390)]

        _, steps = steps_of_run({0: annotated(*spans, window=(100, 450))})

        assert spans_of(steps[0]) == [(1, 100, 200, True), (2, 200, 300, True), (3, 300, 400, True)]

    def test_two_optimizers_that_follow_one_another_end_one_step(self) -> None:
        # Muon |80–90| AdamW |92–99| and so on; the second in a wrapper that is an optimizer, too
        spans = [
            (f"Optimizer.step#{name}.step", at + first, at + last)
            for at in (0, 100, 200)
            for name, first, last in (("Muon", 80, 90), ("Wrapper", 92, 99), ("AdamW", 93, 98))
        ]

        origin, steps = steps_of_run({0: annotated(*spans, window=(5, 350))})

        assert origin == "optimizer"
        assert spans_of(steps[0]) == [(0, 5, 99, True), (1, 99, 199, True), (2, 199, 299, True)]

    @pytest.mark.parametrize(("issued", "count"), [([], 3), ([91, 191, 291], 6)], ids=["silent", "between"])
    def test_what_communicates_between_two_optimizers_makes_them_two_steps(self, issued: list[int], count: int) -> None:
        spans = [
            (f"Optimizer.step#{name}.step", at + first, at + first + 9)
            for at in (0, 100, 200)
            for name, first in (("Generator", 80), ("Critic", 92))
        ]
        calls = [("a:4", at) for at in issued]

        _, steps = steps_of_run({0: annotated(*spans, calls=calls, window=(5, 301))})

        assert len(steps[0]) == count

    def test_calls_before_and_after_make_steps_that_are_not_whole(self) -> None:
        # two calls a step, one of a step that the window begins in, one of a step that it ends in
        steps = [("forward", at, at + 80) for at in (100, 200, 300)]
        issued = [50, 110, 120, 210, 220, 310, 320, 390]
        trace = annotated(*steps, calls=[("all_reduce:4", at) for at in issued], window=(40, 395))

        origin, found = steps_of_run({0: trace})

        assert origin == "annotation"
        assert spans_of(found[0]) == [
            (-1, 40, 100, False), (0, 100, 200, True), (1, 200, 300, True), (2, 300, 380, True), (3, 380, 395, False),
        ]  # fmt: skip

    def test_an_end_that_holds_as_many_calls_as_others_is_whole(self) -> None:
        # a call at the very start of a step belongs to it, one at its end to the next
        steps = [("forward", at, at + 100) for at in (100, 200, 300)]
        trace = annotated(*steps, calls=[("a:4", at) for at in (30, 100, 200, 300, 400)], window=(40, 380))

        _, found = steps_of_run({0: trace})

        assert spans_of(found[0]) == [
            (-1, 30, 100, True), (0, 100, 200, True), (1, 200, 300, True), (2, 300, 400, True), (3, 400, 401, True),
        ]  # fmt: skip

    def test_a_middle_step_with_few_calls_stays_whole(self) -> None:
        steps = [("forward", at, at + 100) for at in (100, 200, 300)]
        trace = annotated(*steps, calls=[("a:4", at) for at in (110, 120, 210, 310, 320)], window=(100, 400))

        assert [step.is_whole for step in steps_of_run({0: trace})[1][0]] == [True, True, True]


class TestCollectivePeriod:
    """Where nothing is annotated, one turn of the sequence of collectives is a step."""

    @staticmethod
    def _trace(tokens: str) -> RankTrace:
        times = range(0, 10 * len(tokens), 10)
        return RankTrace(0, 1_000, [], list(zip(tokens, times, strict=True)), arrivals_ns=times)

    def test_the_last_turn_ends_with_the_window(self) -> None:
        origin, steps = steps_of_run({0: self._trace("ababab")})

        assert origin == "collective_period"
        assert spans_of(steps[0]) == [(0, 0, 20, True), (1, 20, 40, True), (2, 40, 1_000, False)]

    def test_a_turn_that_the_window_cuts_is_not_whole(self) -> None:
        origin, steps = steps_of_run({0: self._trace("abcabcabca")})

        assert origin == "collective_period"
        assert spans_of(steps[0]) == [(0, 0, 30, True), (1, 30, 60, True), (2, 60, 90, True), (3, 90, 1_000, False)]

    def test_a_cut_turn_of_one_rank_does_not_keep_ranks_from_agreeing(self) -> None:
        origin, steps = steps_of_run({0: self._trace("abcabcabca"), 1: self._trace("abcabcabc")})

        assert origin == "collective_period"
        assert [len(found) for found in steps.values()] == [4, 3]

    def test_sizes_that_vary_from_call_to_call_do_not_hide_the_turn(self) -> None:
        # given two exchanges of tokens, of other sizes each time, and a reduction, four times
        calls = [
            (token, 100 * turn + 10 * place)
            for turn in range(4)
            for place, token in enumerate([f"all_to_all:{turn}17", f"all_to_all:{turn}30", "all_reduce:256"])
        ]

        arrivals = [issue_ns for _, issue_ns in calls]
        origin, steps = steps_of_run({0: RankTrace(0, 400, [], calls, arrivals_ns=arrivals)})

        assert origin == "collective_period"
        assert [step.start_ns for step in steps[0]] == [0, 100, 200, 300]

    def test_without_a_period_the_window_is_the_only_step(self) -> None:
        origin, steps = steps_of_run({0: self._trace("abcde")})

        assert origin == "window"
        assert spans_of(steps[0]) == [(0, 0, 1_000, True)]


class TestKernelPeriod:
    """Where calls are all alike, the kernels between them tell how many of them a step issues."""

    @staticmethod
    def _trace(arrivals: Sequence[int], turns: Sequence[int]) -> RankTrace:
        """A device that begins its calls half a turn after the host has issued them."""
        calls = [("all_reduce:", at - 50) for at in arrivals]
        return RankTrace(0, 600, [], calls, turns_ns=turns, arrivals_ns=arrivals)

    def test_a_turn_of_the_kernels_tells_how_many_calls_a_step_holds(self) -> None:
        # turns    |50 ––––––– 150 –––––––– 250 –––––––– 350 –––
        # calls       60   90    160   190    260   290    360   390; issued 50 earlier
        trace = self._trace([60, 90, 160, 190, 260, 290, 360, 390], [50, 150, 250, 350])

        origin, steps = steps_of_run({0: trace, 1: trace})

        assert origin == "kernel_period"
        assert spans_of(steps[1]) == [
            (0, 10, 110, True),
            (1, 110, 210, True),
            (2, 210, 310, True),
            (3, 310, 600, False),
        ]

    @pytest.mark.parametrize(
        ("arrivals", "origin"),
        [
            # a call that begins as the turn before ends; 1 and 4 calls in turn; all in the first one
            ([60, 90, 149, 190, 260, 290, 360, 390], "kernel_period"),
            ([60, 151, 160, 170, 180, 260, 360, 370, 380, 390], "window"),
            ([60, 70, 80, 90, 100, 110], "window"),
        ],
        ids=["edge", "uneven", "once"],
    )
    def test_turns_must_hold_as_many_calls_each(self, arrivals: list[int], origin: str) -> None:
        assert steps_of_run({0: self._trace(arrivals, [50, 150, 250, 350, 450])})[0] == origin

    @pytest.mark.parametrize(
        ("kinds", "origin"),
        [
            (["a:1", "b:2", "a:3", "b:4", "a:5", "b:6"], "kernel_period"),
            (["a:1", "b:1", "b:1", "a:1", "a:1", "c:1"], "window"),
        ],
        ids=["sizes", "operations"],
    )
    def test_sizes_may_vary_from_turn_to_turn_and_operations_may_not(self, kinds: list[str], origin: str) -> None:
        arrivals = [60, 90, 160, 190, 260, 290]
        calls = list(zip(kinds, arrivals, strict=True))
        trace = RankTrace(0, 400, [], calls, turns_ns=[50, 150, 250, 350], arrivals_ns=arrivals)

        assert steps_of_run({0: trace})[0] == origin

    def test_turns_of_which_an_optimizer_ends_several_are_no_steps(self) -> None:
        trace = RankTrace(0, 400, [], [], turns_ns=[0, 100, 200, 300], optimizer_runs=1)

        assert steps_of_run({0: trace})[0] == "window"

    def test_a_device_that_communicates_nothing_has_its_turns_as_steps(self) -> None:
        origin, steps = steps_of_run({0: RankTrace(0, 400, [], [], turns_ns=[100, 200, 300])})

        assert origin == "kernel_period"
        assert spans_of(steps[0]) == [(0, 100, 200, True), (1, 200, 300, True), (2, 300, 400, True)]


def test_a_run_without_ranks_has_no_steps() -> None:
    assert steps_of_run({}) == ("window", {})
