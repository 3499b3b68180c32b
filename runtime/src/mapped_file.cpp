#include "mapped_file.h"

#include "error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace llmc {

std::shared_ptr<MappedFile> MappedFile::open(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    fail(LLMC_NOT_FOUND, "cannot open ", path, ": ", std::strerror(errno));
  struct stat st{};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    fail(LLMC_NOT_FOUND, "cannot read ", path, ": not a regular file");
  }
  size_t size = static_cast<size_t>(st.st_size);
  void *data = nullptr; // an empty file cannot be mapped and needs no mapping
  if (size > 0)
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int error = errno;
  ::close(fd);
  if (data == MAP_FAILED)
    fail(LLMC_NOT_FOUND, "cannot map ", path, ": ", std::strerror(error));
  return std::shared_ptr<MappedFile>(new MappedFile(data, size));
}

MappedFile::~MappedFile() {
  if (data_)
    ::munmap(data_, size_);
}

} // namespace llmc
