// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors

// Runs an image classifier that export_model.py wrote on a MUSA device, without Python:
//
//   classify model.pt input.pt
//   classify model.pt2 input.pt
//
// The model is a TorchScript module from images to logits (N, classes), or an AOTInductor package; input.pt is a
// tensor written by torch.save. Class names are in the model's extra file "classes.txt" or in the package's metadata.

#include <musa_runtime/init.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/script.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr char kUsage[] =
    "usage: classify MODEL INPUT [--device musa] [--top 5] [--repeats 1] [--save OUTPUT] [--pack LIBRARY]...\n"
    "  MODEL    TorchScript module (.pt) or package of AOTInductor (.pt2) written by export_model.py\n"
    "  INPUT    batch of images, a tensor written by torch.save\n"
    "  --save   write the logits, for torch.load\n"
    "  --pack   load an op pack before the model\n";

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string model;
  std::string input;
  std::string device = "musa";
  std::string save;
  std::vector<std::string> packs;
  int top = 5;
  int repeats = 1;
};

int positive(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 1 || value > 1000000) {
    throw UsageError(option + " needs a whole number of at least 1, not '" + text + "'");
  }
  return static_cast<int>(value);
}

Options parse(int argc, char** argv) {
  Options options;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--", 0) != 0) {
      files.push_back(argument);
      continue;
    }
    if (i + 1 == argc) {
      throw UsageError(argument + " needs a value");
    }
    const std::string value = argv[++i];
    if (argument == "--device") {
      options.device = value;
    } else if (argument == "--top") {
      options.top = positive(argument, value);
    } else if (argument == "--repeats") {
      options.repeats = positive(argument, value);
    } else if (argument == "--save") {
      options.save = value;
    } else if (argument == "--pack") {
      options.packs.push_back(value);
    } else {
      throw UsageError("unknown option " + argument);
    }
  }
  if (files.size() != 2) {
    throw UsageError("two files are expected, the model and its input");
  }
  options.model = files[0];
  options.input = files[1];
  return options;
}

std::vector<char> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error("cannot read " + path + ". To write it: python export_model.py --out .");
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    result.push_back(line);
  }
  return result;
}

void print(const at::Tensor& logits, const std::vector<std::string>& classes, int top) {
  const int64_t shown = std::min<int64_t>(top, logits.size(1));
  const auto [shares, indices] = logits.to(at::kFloat).softmax(1).topk(shown, 1);
  for (int64_t image = 0; image < logits.size(0); ++image) {
    std::cout << "image " << image << '\n';
    for (int64_t rank = 0; rank < shown; ++rank) {
      const auto index = indices[image][rank].item<int64_t>();
      const bool named = index < static_cast<int64_t>(classes.size());
      std::printf(
          "  %7.3f%%  %s\n", 100.0 * shares[image][rank].item<double>(),
          named ? classes[static_cast<size_t>(index)].c_str() : ("class " + std::to_string(index)).c_str());
      std::fflush(stdout);
    }
  }
}

struct Model {
  std::function<at::Tensor(const at::Tensor&)> forward;
  std::vector<std::string> classes;
};

Model load_script(const std::string& path, const torch::Device& device) {
  torch::jit::ExtraFilesMap extra{{"classes.txt", ""}};
  torch::jit::Module module = torch::jit::load(path, device, extra);
  module.eval();
  return {
      [module](const at::Tensor& input) mutable { return module.forward({input}).toTensor(); },
      lines(extra["classes.txt"])};
}

// A package is compiled for one device type. The index is selected here; -1 is the current device.
Model load_package(const std::string& path, const torch::Device& device) {
  const auto loader = std::make_shared<torch::inductor::AOTIModelPackageLoader>(
      path, /*model_name=*/"model", /*run_single_threaded=*/false, /*num_runners=*/1, device.index());
  auto metadata = loader->get_metadata();
  TORCH_CHECK(
      metadata["AOTI_DEVICE_KEY"] == c10::DeviceTypeName(device.type(), /*lower_case=*/true), path, " is compiled for ",
      metadata["AOTI_DEVICE_KEY"], ", not for ", device, ". Fix: run it there, or export the model again.");
  return {[loader](const at::Tensor& input) { return loader->run({input}).at(0); }, lines(metadata["classes.txt"])};
}

int run(const Options& options) {
  // Must precede the first use of the device: before, torch cannot parse the name "musa".
  musa_runtime::init();
  for (const std::string& pack : options.packs) {
    musa_runtime::load_pack(pack);
  }
  const torch::Device device(options.device);

  const std::vector<char> pickled = read(options.input);
  const at::Tensor input = torch::jit::pickle_load(pickled).toTensor().to(device);

  read(options.model); // otherwise torch reports a missing file as an archive error
  const std::filesystem::path path = options.model;
  const Model model =
      path.extension() == ".pt2" ? load_package(options.model, device) : load_script(options.model, device);

  const c10::InferenceMode inference;
  at::Tensor logits;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < options.repeats; ++i) {
    logits = model.forward(input);
  }
  // Work on the device is asynchronous; the copy waits for it.
  logits = logits.cpu();
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;

  TORCH_CHECK(
      logits.dim() == 2, "The model returned a tensor of ", logits.dim(), " dimensions where logits (N, classes) are ",
      "expected. Fix: export a classifier, as export_model.py does.");
  print(logits, model.classes, options.top);
  std::printf(
      "%.2f ms a batch of %ld on %s\n", elapsed.count() / options.repeats, static_cast<long>(input.size(0)),
      device.str().c_str());
  if (!options.save.empty()) {
    const std::vector<char> data = torch::jit::pickle_save(logits);
    std::ofstream file(options.save, std::ios::binary);
    if (!file.write(data.data(), static_cast<std::streamsize>(data.size()))) {
      throw std::runtime_error("cannot write " + options.save);
    }
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const UsageError& error) {
    std::cerr << "classify: " << error.what() << '\n' << kUsage;
    return 2;
  } catch (const c10::Error& error) {
    std::cerr << "classify: " << error.what_without_backtrace() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "classify: " << error.what() << '\n';
  }
  return 1;
}
