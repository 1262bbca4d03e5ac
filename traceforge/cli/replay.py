"""`traceforge replay DB`: what a pacing policy or another change would have done, and how far to believe it."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from traceforge.cli.console import note, print_frame
from traceforge.cli.files_used import note_other_runs
from traceforge.cli.inputs import TARGET_HELP, opened, print_json
from traceforge.errors import InputUnusableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceforge.replay.edit import Edit
    from traceforge.replay.places import Places
    from traceforge.replay.policy import Policy
    from traceforge.replay.replay_input import ReplayInput
    from traceforge.replay.settings import Settings

    Chosen = Sequence[tuple[Policy, Mapping[str, float]]]
    Rows = list[dict[str, object]]

_SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z])")


def replay(
    target: Annotated[Path | None, typer.Argument(help=f"{TARGET_HELP} --list needs none.")] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICY",
            help="Policy, such as bounded_delay:window=4,gain=0.5, or its file; may be repeated. Default: all.",
        ),
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EDIT",
            help="Change the job, such as fix_rank:rank=2 or scale_transfer:factor=0.5; of several each alone and all "
            "together. `--list` shows them.",
        ),
    ] = None,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Try a grid of parameters of each policy and mark the Pareto front.")
    ] = False,
    save_policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="Write the policy and what is predicted, for `traceforge.live` to try."),
    ] = None,
    run: Annotated[str | None, typer.Option(help="Run to replay, where the database holds several.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
    show_list: Annotated[bool, typer.Option("--list", help="List the policies and the changes to a job.")] = False,
) -> None:
    """Replay the run under pacing policies, or with a change.

    A gain from pacing is predicted only where the run itself shows that early arrivals slow something down.
    """
    from traceforge.replay.edit import parse_edit
    from traceforge.replay.policy import policies
    from traceforge.replay.policy_file import choose

    if show_list or (what_if and "list" in what_if):
        _list(as_json=as_json)
        return
    if target is None:
        raise UsageError("nothing to replay", hint="name traces or a database; --list alone shows policies and changes")
    _refuse_swapped(policy or (), what_if or ())
    edits = [parse_edit(text) for text in what_if or ()]
    chosen = [(one.policy, one.parameters) for one in map(choose, policy or (() if edits else policies()))]
    _check_saved(save_policy, chosen, sweep=sweep)
    given, places = _loaded(target, run, with_places=bool(edits))
    document: dict[str, object] = {}
    if places is not None:
        document["what_if"] = _what_ifs(given, places, edits, quiet=as_json)
    if chosen and sweep:
        document["sweep"] = _sweep(given, chosen, quiet=as_json)
    elif chosen:
        document["outcomes"] = found = _outcomes(given, chosen, quiet=as_json)
        _save(save_policy, found[0])
    if as_json:
        print_json(document)


def _refuse_swapped(given_policies: "Sequence[str]", given_edits: "Sequence[str]") -> None:
    """Refuse a change to a job that is given as a policy, and the other way round.

    Raises:
        UsageError: one is; the hint has it where it belongs.
    """
    from traceforge.replay.edit import edits
    from traceforge.replay.policy import policies

    for texts, own, other, what, option in (
        (given_policies, policies(), edits(), "a change to the job, and no policy", "--what-if"),
        (given_edits, edits(), policies(), "a policy, and no change to the job", "--policy"),
    ):
        for text in texts:
            name = text.partition(":")[0]
            if name in other and name not in own:
                raise UsageError(f"`{name}` is {what}", hint=f"{option} {text}")


def _loaded(target: Path, run: str | None, *, with_places: bool) -> "tuple[ReplayInput, Places | None]":
    """What a replay of the run needs, and its places where the job is to be changed."""
    from traceforge import api
    from traceforge.replay.places import load_places
    from traceforge.replay.replay_input import load_replay_input

    with opened(target) as store:
        run_id = api.run_id(store, run)
        note_other_runs(store, run_id, run)
        given = load_replay_input(store, run_id)
        if given is None:
            hint = "FROM meta.issue and FROM attribute.verdict say what is missing"
            raise InputUnusableError("no iteration with matched collectives to replay", where=str(target), hint=hint)
        return given, load_places(store, run_id, given.model) if with_places else None


def _outcomes(given: "ReplayInput", chosen: "Chosen", *, quiet: bool) -> "Rows":
    import polars as pl

    from traceforge.replay.outcome import outcomes

    found = [asdict(outcome) for outcome in outcomes(given, chosen)]
    if not quiet:
        print_frame(
            pl.DataFrame(found).select(
                "policy", "parameters", "throughput_ratio", "gain_ceiling", "cv", "engaged_share", "verdict"
            )
        )
        _note_reasons([(str(outcome["policy"]), str(outcome["reason"])) for outcome in found])
    return found


def _check_saved(path: Path | None, chosen: "Chosen", *, sweep: bool) -> None:
    """Refuse to save what no job could run.

    Raises:
        UsageError: there are several policies, or the only one sees the future, or no job would take the file for one.
    """
    if path is not None and path.suffix != ".json":
        raise UsageError(f"`--save-policy {path}` is not named as a policy's file is", hint="such as policy.json")
    if path is not None and (len(chosen) != 1 or sweep or chosen[0][0].sees_future):
        hint = "such as --policy bounded_delay:gain=0.5 --save-policy policy.json"
        raise UsageError("`--save-policy` needs one policy that a job can run", hint=hint)


def _save(path: Path | None, outcome: "Mapping[str, Any]") -> None:
    if path is None:
        return
    from traceforge.replay.policy_file import PredictedGain, write_policy

    text = f"{outcome['policy']}:{outcome['parameters']}".rstrip(":")
    low, high = (
        # The job that tries it runs steps to come.
        outcome[f"throughput_ratio_{end}"] if outcome[f"throughput_ratio_next_{end}"] is None
        else outcome[f"throughput_ratio_next_{end}"]
        for end in ("low", "high")
    )  # fmt: skip
    try:
        write_policy(path, text, PredictedGain(outcome["throughput_ratio"], low, high, outcome["verdict"]))
    except OSError as error:
        raise UsageError(f"the policy cannot be written: {error}", where=str(path)) from error
    note(f'policy: {path}; try it with live.record(…, policy="{path}")')


def _sweep(given: "ReplayInput", chosen: "Chosen", *, quiet: bool) -> "Rows":
    from traceforge.replay.sweep import sweep, table

    found = table(sweep(given, chosen))
    if not quiet:
        print_frame(found.drop("run_id"))
        if not given.known.is_positive:
            note(f"No coupling is known that pacing could use, so parameters differ in cost only. {given.known.reason}")
    return found.to_dicts()


def _what_ifs(
    given: "ReplayInput", places: "Places", chosen: "Sequence[tuple[Edit, Settings]]", *, quiet: bool
) -> "Rows":
    import polars as pl

    from traceforge.replay.what_if import job_of, try_edits

    job = job_of(given, places)
    tried = [[one] for one in chosen] + ([list(chosen)] if len(chosen) > 1 else [])
    found = [asdict(try_edits(given, job, edits)) for edits in tried]
    if not quiet:
        print_frame(pl.DataFrame(found, infer_schema_length=None).drop("run_id", "reason"))
        _note_reasons([(str(one["edit"]), str(one["reason"])) for one in found])
        if given.model.has_unfelt_ends:
            note(
                "Collectives whose end no rank stood still for in the recording hold up nothing but their stream here:"
                " where a change would make ranks wait for them, it is worth less than this says, beyond the interval."
            )
        if not given.known.is_measured:
            note("Transfers are taken not to change with the spread of arrivals, as that could not be measured.")
    return found


def _note_reasons(shown: "Sequence[tuple[str, str]]") -> None:
    """Each sentence of the reasons once, behind all that it holds for."""
    names: dict[str, list[str]] = {}
    for name, reason in shown:
        for sentence in _SENTENCE_END.split(reason):
            names.setdefault(sentence, []).append(name)
    groups: dict[str, list[str]] = {}
    for sentence, those in names.items():
        groups.setdefault(", ".join(dict.fromkeys(those)), []).append(sentence)
    for together, sentences in groups.items():
        note(f"{together}: {' '.join(sentences)}")


def _list(*, as_json: bool) -> None:
    """Policies and changes to a job, as the options take them."""
    import polars as pl

    from traceforge.replay.edit import edits
    from traceforge.replay.policy import policies
    from traceforge.replay.settings import format_settings

    listed: dict[str, list[Policy | Edit]] = {"policy": [*policies().values()], "edit": [*edits().values()]}
    found = {
        kind: [
            {"name": one.name, "parameters": format_settings(one.defaults), "description": one.description}
            for one in those
        ]
        for kind, those in listed.items()
    }
    if as_json:
        print_json({"policies": found["policy"], "edits": found["edit"]})
        return
    for kind, rows in found.items():
        print_frame(pl.DataFrame(rows).rename({"name": kind}))
