"""What a launcher passed to the processes of a report. In: tables of an export. Out: rank, world size, and the job.

Idea: exports hold the environment and the command line of what `nsys profile` started, with whatever secrets stand in
them; a few names are looked for, and nothing else is kept. A job is identified by its scheduler's number, and
by the port at which its processes meet, which all ranks share and no other job of the host has.
Not handled: jobs that state neither.
"""

import re

from traceforge.reading.table_file import TableFile

_ENVIRONMENT = re.compile(r"(?:^|[\0;\n])(?P<name>[A-Z_]+)=\"?(?P<value>[\w.:\[\]-]{1,64})\"?(?=$|[\0;\n])")
_NUMBER = re.compile(r"\d{1,9}")
# In this order: what the framework itself is given before what its launcher says.
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK", "PALS_RANKID")
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE")
_PORT, _MEETING = "MASTER_PORT", "TORCHELASTIC_RUN_ID"
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID", _PORT, _MEETING)
# torchrun's command line stands for what it passes to its processes.
_ARGUMENT = re.compile(r"--(?P<name>master[_-]port|rdzv[_-]id)(?:=(?P<value>[\w.:-]{1,64}))?$")


def launched(database: TableFile) -> tuple[int | None, int | None]:
    """Rank and number of ranks; None where the environment says none."""
    said = {name: int(text) for name, text in _environment(database).items() if _NUMBER.fullmatch(text)}
    rank = next((said[name] for name in _RANKS if name in said), None)
    return rank, next((said[name] for name in _SIZES if name in said), None)


def stated_job(database: TableFile) -> dict[str, str]:
    """What is the same for all processes of a job and another for those of others, by its name; perhaps empty."""
    said = {name: text for name, text in _environment(database).items() if name in _JOBS}
    return said | _arguments(database)


def _environment(database: TableFile) -> dict[str, str]:
    """What launchers give to processes; the rest of the environment may hold secrets and is not kept."""
    texts: list[str] = []
    if database.has("TARGET_INFO_SYSTEM_ENV", "name", "value"):
        value = database.text("TARGET_INFO_SYSTEM_ENV", "value")
        texts += _values(database, f"SELECT {value} FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'DeviceEnvironment'")
    if database.has("META_DATA_CAPTURE", "name", "value"):
        value = database.text("META_DATA_CAPTURE", "value")
        texts += _values(database, f"SELECT {value} FROM META_DATA_CAPTURE WHERE name LIKE '%:ENVIRONMENT_VARIABLE'")
    found: dict[str, str] = {}
    for text in texts:
        for match in _ENVIRONMENT.finditer(text):
            if match["name"] in _RANKS + _SIZES + _JOBS:
                found.setdefault(match["name"], match["value"])
    return found


def _arguments(database: TableFile) -> dict[str, str]:
    """Port and name of the meeting of torchrun's processes, as `--name=value` or as two arguments."""
    if not database.has("META_DATA_CAPTURE", "name", "value"):
        return {}
    value = database.text("META_DATA_CAPTURE", "value")
    query = f"SELECT name, {value} FROM META_DATA_CAPTURE WHERE name LIKE 'PROCESS_0:ARGUMENT%'"
    places = {str(name).rpartition("_")[2]: str(text) for name, text in database.rows(query) if text is not None}
    texts = {int(place): text for place, text in places.items() if _NUMBER.fullmatch(place)}
    found: dict[str, str] = {}
    for place, text in sorted(texts.items()):
        if match := _ARGUMENT.match(text):
            said = match["value"] or texts.get(place + 1, "")
            if re.fullmatch(r"[\w.:-]{1,64}", said):
                found.setdefault(_PORT if match["name"].startswith("master") else _MEETING, said)
    return found


def _values(database: TableFile, query: str) -> list[str]:
    return [text for (text,) in database.rows(query) if text is not None]
