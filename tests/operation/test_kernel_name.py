"""Short names of kernels, and what kernels compute."""

import pytest

from traceforge.operation.kernel_name import KINDS, LONGEST, kind_of, short_name


@pytest.mark.parametrize(
    ("name", "short", "kind"),
    [
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, at::Array<3>)",
            "vectorized_elementwise_kernel<CUDAFunctor_add>",
            "elementwise",
        ),
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 64, 64>(float*)",
            "CatArrayBatchedCopy",
            "copy",
        ),
        (
            "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(cutlass_80_tensorop::Params)",
            "cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4",
            "matrix_product",
        ),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64EEEvPT0_", "add_rmsnorm_quant_kernel", "normalisation"),
        (
            "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_40BlockFmha",
            "FmhaBatchPrefillWithPagedKVCacheKernel",
            "attention",
        ),
        (
            "_ZN7cutlass13device_kernelIN2at4cuda6detail25enable_3x_kernel_for_sm10INS_4gemm6kernel13GemmUniversalINS5",
            "GemmUniversal",
            "matrix_product",
        ),
        (
            "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float>(cublasGemvParams)",
            "gemvx::kernel",
            "matrix_product",
        ),
        ("volta_sgemm_128x64_tn", "volta_sgemm_128x64_tn", "matrix_product"),
        ("void fbgemm_gpu::permute_2D_data_kernel<false, int>(int, int)", "permute_2D_data_kernel", "other"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)", "copy"),
        ("", "", "other"),
        ("<<<", "<<<", "other"),
        ("_ZN99999999999x", "_ZN99999999999x", "other"),
    ],
)
def test_a_name_keeps_what_tells_kernels_apart(name: str, short: str, kind: str) -> None:
    assert (short_name(name), kind_of(short, None)) == (short, kind)
    assert kind in KINDS


def test_a_long_name_is_cut_in_its_middle() -> None:
    short = short_name("a" * 100 + "z" * 100)
    assert len(short) <= LONGEST
    assert (short[0], short[-1]) == ("a", "z")


def test_a_product_inside_of_a_convolution_is_a_convolution() -> None:
    assert kind_of("volta_sgemm_128x64_tn", "aten::cudnn_convolution") == "convolution"
    assert kind_of("volta_sgemm_128x64_tn", "aten::mm") == "matrix_product"


def test_an_operation_tells_what_the_name_of_a_kernel_does_not() -> None:
    assert kind_of("device_kernel", "aten::_grouped_mm") == "matrix_product"
    assert kind_of("splitKreduce_kernel", "aten::add") == "matrix_product"
    assert kind_of("device_kernel", "mine::op") == "other"


def test_operations_of_xla_keep_their_names() -> None:
    assert [short_name(name) for name in ("copy-done.2", "all-reduce-start", "loop_fusion.1")] == [
        "copy-done.2",
        "all-reduce-start",
        "loop_fusion",
    ]
