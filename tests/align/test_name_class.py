"""What an event is, by category and name, over all eras and vendors."""

import pytest

from tests.given import Trace, built, rows_of, store_of
from traceforge.vocabulary import vocabulary

NCCL_2_18 = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)"
NCCL_2_19 = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
NCCL_2_27 = "ncclSymDevKernel_AllGather_LL(ncclSymDevWorkArgs*)"
FETCH = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
PYTHON_FETCH = "torch/utils/data/dataloader.py(521): __next__"

CLASSES = [
    # Steps, today's and PyTorch 1.8's.
    ("user_annotation", "ProfilerStep#7", "iteration"),
    ("Operator", "ProfilerStep#7", "iteration"),
    ("gpu_user_annotation", "ProfilerStep#7", "ignored"),
    ("user_annotation", "ProfilerStep#7 of 9", "annotation"),
    # Communication on devices.
    ("kernel", NCCL_2_18, "communication"),
    ("kernel", NCCL_2_19, "communication"),
    ("kernel", NCCL_2_27, "communication"),
    ("Kernel", NCCL_2_18, "communication"),
    ("kernel", "rcclGenericKernel", "communication"),
    ("kernel", "void deep_ep::intranode::dispatch<8>(int4*)", "communication"),
    ("kernel", "void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)", "communication"),
    ("kernel", "void deep_ep::internode_ll::combine<true, 7168, 10>(void*)", "communication"),
    ("kernel", "void deep_ep::intranode::cached_notify_combine<8>(void**)", "communication"),
    ("kernel", "_ZN7deep_ep9intranode8dispatchILi8EEEvP4int4", "communication"),
    ("kernel", "void dpsk::ep::internode::notify_dispatch<8>(int const*)", "communication"),
    ("kernel", "void dpsk::ep::intranode::dispatch<8>(int4*)", "communication"),
    ("kernel", "void mscclpp::allreduce_kernel<float>(mscclpp::Handle)", "communication"),
    ("kernel", "void nvshmemi_transfer_rma<0>(int)", "communication"),
    ("kernel", "void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<float>(float*)", "communication"),
    ("kernel", "void c10d::symmetric_memory::two_shot_all_reduce_kernel<float>(float*)", "communication"),
    ("kernel", "void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8>(Params)", "communication"),
    ("kernel", "_combine_all_to_all_kernel", "communication"),
    ("kernel", "fused_all2all_kernel", "communication"),
    # Experts of MoRI, TensorRT-LLM, PPLX, Hybrid-EP and UCCL; what only sorts tokens for them computes.
    ("kernel", "EpDispatchIntraNodeKernel_bf16", "communication"),
    ("kernel", "void mori::moe::EpCombineInterNodeV1KernelLowLatency<float>(Args)", "communication"),
    ("kernel", "moeA2ADispatchKernel", "communication"),
    ("kernel", "void moeA2ACombineKernel<float, 8>(Pointers)", "communication"),
    ("kernel", "moeA2ASanitizeExpertIdsKernel(int*)", "compute"),
    ("kernel", "void a2a_dispatch_send_kernel<true, 16>(unsigned long)", "communication"),
    ("kernel", "void pplx::a2a_combine_recv_kernel<float>(unsigned long)", "communication"),
    ("kernel", "void hybrid_ep::dispatch_kernel<short, 4>(Param)", "communication"),
    ("kernel", "void hybrid_ep::device_sync_kernel<4>(int*)", "communication"),
    ("kernel", "void hybrid_ep::scan<16, 512>(bool*)", "compute"),
    ("kernel", "void uccl::internode_ll::dispatch<true, 7168>(void*)", "communication"),
    ("kernel", "void uccl::layout::get_dispatch_layout<32, 8>(long const*)", "compute"),
    ("kernel", "void flash::combine_kernel<float>(Params)", "compute"),
    ("kernel", "void step_combine_kernel<float>(Params)", "compute"),
    # Copies between devices.
    ("gpu_memcpy", "Memcpy PtoP (Device -> Device)", "communication"),
    ("gpu_memcpy", "Memcpy PtoP", "communication"),
    ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", "copy"),
    # What only quotes such a name computes.
    ("kernel", "void deep_ep::layout::get_dispatch_layout<32, 8>(long const*)", "compute"),
    ("kernel", "void route<deep_ep::intranode::Config>(ncclComm*)", "compute"),
    ("kernel", "void softmax<float, WarpAllReduce<MaxOp>>(float*)", "compute"),
    ("kernel", "void blockAllReduceSum<float>(float*)", "compute"),
    ("kernel", "triton_poi_fused_all_gather_into_tensor_0", "compute"),
    ("kernel", "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*>>(long*)", "compute"),
    # Communication of host threads, and the calls that start or await it.
    ("user_annotation", "gloo:all_reduce", "host_communication"),
    ("cpu_op", "gloo:all_reduce", "host_communication"),
    ("cpu_op", "record_param_comms", "communication_call"),
    ("cpu_op", "c10d::allreduce_", "communication_call"),
    ("cpu_op", "_c10d_functional::wait_tensor", "communication_call"),
    ("user_annotation", "nccl:all_reduce", "communication_call"),
    ("user_annotation", "xccl:all_reduce", "communication_call"),
    ("kernel", "oneccl_ring_exchange", "communication"),
    # MCCL of Moore Threads and MetaX, and CNCL of Cambricon.
    ("user_annotation", "mccl:all_reduce", "communication_call"),
    ("user_annotation", "cncl:all_gather", "communication_call"),
    ("kernel", "mcclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(mcclWorkElem)", "communication"),
    ("kernel", "mcclKernel_AllReduce_RING_SIMPLE_Sum___mt_bfloat16", "communication"),
    ("gpu_user_annotation", "nccl:all_reduce", "ignored"),
    # MPI's own calls match no collectives, whatever they are called.
    ("user_annotation", "MPI_Init", "mpi_call"),
    ("user_annotation", "MPI_Allreduce", "mpi_call"),
    ("user_annotation", "mpi_sync_grads", "communication_wait"),
    # Other device work, today's and older names.
    ("kernel", "ampere_sgemm_128x64_tn", "compute"),
    ("Kernel", "ampere_sgemm_128x64_tn", "compute"),
    ("mtia_ccp_events", "matmul", "compute"),
    ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", "copy"),
    ("Memcpy", "Memcpy HtoD (Pinned -> Device)", "copy"),
    ("gpu_memset", "Memset (Device)", "copy"),
    ("Memset", "Memset (Device)", "copy"),
    # The host fetches data.
    ("user_annotation", FETCH, "input"),
    ("Operator", FETCH, "input"),
    ("python_function", PYTHON_FETCH, "input"),
    ("user_annotation", "## wait_for_batch ##", "input"),
    ("user_annotation", "load_batch", "input"),
    # FSDP fetches parameters, which is no input (PyTorch 2.0, 2.4).
    ("user_annotation", "FullyShardedDataParallel._pre_backward_prefetch", "annotation"),
    ("user_annotation", "FSDP::backward_prefetch for layers.3", "annotation"),
    # The host saves; recomputing activations saves nothing.
    ("user_annotation", "save_checkpoint", "checkpoint"),
    ("python_function", "torch/serialization.py(627): save", "checkpoint"),
    ("cpu_op", "CheckpointFunction", "operation"),
    ("cpu_op", "CheckpointFunctionBackward", "operation"),
    ("cpu_op", "FSDP::post_forward (blocks.2._checkpoint_wrapped_module)", "operation"),
    ("python_function", "torch/utils/checkpoint.py(489): checkpoint", "ignored"),
    # The host is busy with itself.
    ("user_annotation", "gc.collect", "garbage_collection"),
    ("python_function", "<built-in function collect>", "garbage_collection"),
    ("python_function", "<built-in method collect of Pool object at 0x7f>", "ignored"),
    ("cuda_runtime", "cudaMalloc", "allocator"),
    ("cuda_runtime", "cudaFree", "allocator"),
    ("cuda_runtime", "hipMalloc", "allocator"),
    ("cuda_driver", "cuMemCreate", "allocator"),
    ("cuda_runtime", "cudaDeviceSynchronize", "synchronisation"),
    ("Runtime", "cudaStreamSynchronize", "synchronisation"),
    ("cuda_runtime", "hipStreamSynchronize", "synchronisation"),
    ("cuda_runtime", "cudaMemcpy", "synchronisation"),
    ("cuda_runtime", "cudaMemcpyAsync", "launch"),
    ("cuda_runtime", "cudaLaunchKernel", "launch"),
    ("Runtime", "cudaLaunchKernel", "launch"),
    ("cuda_driver", "cuLaunchKernelEx", "launch"),
    ("privateuse1_runtime", "musaLaunchKernel", "launch"),
    ("musa_runtime", "musaMalloc", "allocator"),
    ("xpu_driver", "zeCommandListAppendLaunchKernel", "launch"),
    ("xpu_driver", "zeEventHostSynchronize", "synchronisation"),
    ("xpu_driver", "zeMemAllocDevice", "allocator"),
    ("hpu_op", "Launch", "launch"),
    ("hip_runtime", "hipLaunchKernel", "launch"),
    ("privateuse1_runtime", "musaStreamSynchronize", "synchronisation"),
    ("privateuse1_driver", "muMemFree_v2", "allocator"),
    ("cuda_runtime", "mcMemcpy", "synchronisation"),
    ("cuda_runtime", "mcMallocAsync", "allocator"),
    # Intel's unified runtime, and its predecessor.
    ("xpu_runtime", "urEnqueueKernelLaunch", "launch"),
    ("xpu_runtime", "urEnqueueEventsWait", "launch"),
    ("xpu_runtime", "urEventWait", "synchronisation"),
    ("xpu_runtime", "piEventsWait", "synchronisation"),
    ("xpu_runtime", "urQueueFinish", "synchronisation"),
    ("xpu_runtime", "urUSMDeviceAlloc", "allocator"),
    ("xpu_runtime", "urUSMFree", "allocator"),
    # Cambricon.
    ("privateuse1_driver", "cnInvokeKernel", "launch"),
    ("privateuse1_runtime", "cnrtQueueSync", "synchronisation"),
    ("privateuse1_runtime", "cnrtMalloc", "allocator"),
    ("privateuse1_runtime", "aclrtMalloc", "allocator"),
    # Other host work.
    ("cpu_op", "aten::mm", "operation"),
    ("Operator", "aten::mm", "operation"),
    ("cpu_op", "DistributedDataParallel.forward", "operation"),
    ("user_annotation", "Optimizer.step#SGD.step", "annotation"),
    ("python_function", "train.py(12): forward", "ignored"),
    ("ac2g", "ac2g", "ignored"),
    ("Trace", "PyTorch Profiler (0)", "ignored"),
    (None, "process_name", "ignored"),
]


@pytest.mark.parametrize(("category", "name", "event_class"), CLASSES)
def test_an_event_is_judged_by_its_category_and_name(category: str | None, name: str, event_class: str) -> None:
    assert vocabulary().classify(category, name)[1] == event_class


@pytest.mark.parametrize(
    ("category", "today"),
    [
        ("Operator", "cpu_op"),
        ("Kernel", "kernel"),
        ("Memcpy", "gpu_memcpy"),
        ("Memset", "gpu_memset"),
        ("Runtime", "cuda_runtime"),
        ("cpu_op", "cpu_op"),
        (None, None),
    ],
)
def test_old_categories_have_a_name_of_today(category: str | None, today: str | None) -> None:
    assert vocabulary().classify(category, "anything")[0] == today


def test_each_distinct_name_is_judged_once_and_only_communication_names_an_operation() -> None:
    trace = Trace().event("kernel", NCCL_2_19, 0, 9).event("kernel", NCCL_2_19, 10, 19)
    trace.event(None, "unnamed kind", 20, 21).event("cpu_op", "aten::all_reduce_like", 30, 31)

    store = built(store_of(trace), "align.name_class")

    assert rows_of(store, "SELECT category, canonical_category, class, op FROM align.name_class ORDER BY class") == [
        ("kernel", "kernel", "communication", "all_reduce"),
        (None, None, "ignored", None),
        ("cpu_op", "cpu_op", "operation", None),
    ]


@pytest.mark.parametrize(
    ("name", "is_recorded"),
    [
        (NCCL_2_19, True),
        (NCCL_2_27, True),
        ("mscclKernel_Sum_float_Simple", True),
        ("Memcpy PtoP (Device -> Device)", True),
        ("void deep_ep::internode::dispatch<false, 2>(int4*)", False),
        ("void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)", False),
        ("void mscclpp::allreduce_kernel<float>(mscclpp::Handle)", False),
        ("void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<float>(float*)", False),
    ],
)
def test_pytorch_records_calls_of_the_libraries_that_its_process_groups_use(name: str, is_recorded: bool) -> None:
    assert vocabulary().is_recorded(name) == is_recorded
