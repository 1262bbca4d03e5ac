"""Pages on real traces, one set a kind of page: sentences agree, and a click on the first finding shows its block."""

from collections.abc import Callable
from pathlib import Path

import pytest

from traceforge import api
from traceforge.store.database import Store

from .browser import Page
from .budgets import open_first_finding, settled
from .sentences import contradictions

pytestmark = pytest.mark.browser

_SETS = {
    "kineto/torchrec_sst_long_a2a_optimizer_t16989550": "shown",
    "kineto/torchrec_sst_long_a2a_optimizer_2_t16989553": "shown",
    "kineto/torchrec_sst_long_a2a_optimizer_5_qcomm_t16989587": "none",
    "kineto/megatron_tp2": "shown",
    "chakra/megatron_tp8_a100": "shown",
    "kineto/torchrec_resnet18_t16981079": "none",
    "kineto/self_gloo4_ddp": "shown",
    "kineto/torchao_ep_moe": "none",
    "nccl/nccl_tests_2node_ib": "none",
    "flight_recorder/gpu_error_1st": "none",
    "chakra/resnet_dp_text": "none",
    "nsys/h100_mfu_pair": "shown",
    "xplane/tpu_v6e_4chips": "none",
    "rocprof/v3_json_aorta_train": "none",
}


@pytest.mark.parametrize(("folder", "moment"), _SETS.items(), ids=[Path(name).name for name in _SETS])
def test_real_traces_make_a_page_that_agrees_with_itself_and_leads_to_its_finding(
    page: Page, corpus_database: Callable[[str], Path], tmp_path: Path, folder: str, moment: str
) -> None:
    # given the report on traces that other people recorded
    with Store(corpus_database(folder), read_only=True) as store:
        kind = store.value("SELECT kind FROM attribute.verdict ORDER BY run_id LIMIT 1")
        html = api.report(store).html

    # then its sentences agree with the verdict, the header and one another
    assert contradictions(html, str(kind)) == []

    # and a click on its first finding, if there is one, shows an outlined block
    page.open(html, tmp_path)
    settled(page)
    assert open_first_finding(page) == moment
    assert page.complaints() == []
