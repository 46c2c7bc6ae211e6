// Lets the Python tests see what the picture code makes of a file, to hold it against Pillow.
//   picture_tool          reads jobs from stdin, one a line, and answers each on stdout:
//     decode FILE OUT       "ok WIDTH HEIGHT" and the RGB bytes in OUT, or "error CODE MESSAGE"
//     resize FILE W H OUT   the same after decode and bicubic resize to W x H
//     canvas FILE OUT       the same after the released model's resize plan
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "io/picture/decode.h"
#include "model/deepseek_v41/vision/patches.h"
#include "model/deepseek_v41/vision/resample.h"

namespace {

using fathom::Result;
using fathom::RgbImage;

struct Job {
  std::string kind;
  std::string file;
  int64_t width = 0;
  int64_t height = 0;
  std::string out;
};

Job parse_job(const std::string& line) {
  std::istringstream words(line);
  Job job;
  words >> job.kind >> job.file;
  if (job.kind == "resize") words >> job.width >> job.height;
  words >> job.out;
  return job;
}

Result<RgbImage> run(const Job& job, fathom::ThreadPool& pool) {
  std::ifstream file(job.file, std::ios::binary);
  const std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
  const std::vector<uint8_t> bytes(chars.begin(), chars.end());
  FATHOM_ASSIGN(RgbImage image, fathom::decode_picture(bytes));
  if (job.kind == "resize") {
    return fathom::v41::resize_bicubic(image, job.width, job.height, pool);
  }
  if (job.kind == "canvas") {
    const fathom::v41::VisionConfig vision;
    FATHOM_ASSIGN(const auto plan, fathom::v41::plan_resize(image.width, image.height, vision));
    return fathom::v41::fit_to_box(image, plan, vision, pool);
  }
  return image;
}

}  // namespace

int main() {
  fathom::ThreadPool pool(2);
  for (std::string line; std::getline(std::cin, line);) {
    const Job job = parse_job(line);
    const Result<RgbImage> image = run(job, pool);
    if (image.is_ok()) {
      std::ofstream out(job.out, std::ios::binary);
      out.write(reinterpret_cast<const char*>(image->pixels.data()),
                static_cast<std::streamsize>(image->pixels.size()));
      out.close();
      std::cout << "ok " << image->width << ' ' << image->height << std::endl;
    } else {
      std::cout << "error " << fathom::code_name(image.status().code()) << ' '
                << image.status().message() << std::endl;
    }
  }
  return 0;
}
