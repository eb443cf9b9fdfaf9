// Serve complaints.onnx in C++17.
#include <onnxruntime_cxx_api.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  Ort::Env env;
  Ort::Session session(env, ORT_TSTR("complaints.onnx"), Ort::SessionOptions{});

  // Three rows. Every input has the shape (n_rows, 1).
  // NaN is a missing number, "" is missing text.
  const std::array<int64_t, 2> shape{3, 1};
  std::vector<float> days{2, NAN, 25};
  const std::vector<const char*> channel{"shop", "", "phone"};
  const std::vector<const char*> text{"thank you", "it burns", "it never came"};

  // The tensor of numbers uses the memory of `days`.
  const auto memory =
      Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::vector<Ort::Value> inputs;
  inputs.push_back(Ort::Value::CreateTensor<float>(
      memory, days.data(), days.size(), shape.data(), shape.size()));

  // The tensors of strings copy them.
  Ort::AllocatorWithDefaultOptions allocator;
  const auto strings = [&](const std::vector<const char*>& values) {
    auto tensor = Ort::Value::CreateTensor(
        allocator, shape.data(), shape.size(),
        ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
    tensor.FillStringTensor(values.data(), values.size());
    return tensor;
  };
  inputs.push_back(strings(channel));
  inputs.push_back(strings(text));

  const std::array<const char*, 3> input_names{"days", "channel", "text"};
  const std::array<const char*, 2> output_names{"label", "probabilities"};
  const auto outputs = session.Run(
      Ort::RunOptions{}, input_names.data(), inputs.data(), inputs.size(),
      output_names.data(), output_names.size());

  // The probabilities are flat: those of the first row, then of the second.
  const float* probabilities = outputs[1].GetTensorData<float>();
  const auto sizes = outputs[1].GetTensorTypeAndShapeInfo().GetShape();
  for (int64_t row = 0; row < sizes[0]; ++row) {
    std::printf("%s", outputs[0].GetStringTensorElement(row).c_str());
    for (int64_t column = 0; column < sizes[1]; ++column) {
      std::printf(" %.7f", probabilities[row * sizes[1] + column]);
    }
    std::printf("\n");
  }
}
