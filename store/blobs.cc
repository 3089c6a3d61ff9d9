#include "store/blobs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/crypto.h"
#include "base/error.h"
#include "base/fd.h"

namespace umpteenth::store {
namespace fs = std::filesystem;
namespace {

void ensure_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0)
    fsync_path(folder.parent_path());
  else if (errno != EEXIST)
    throw errno_error(errno == ENOSPC ? Code::unavailable : Code::internal,
                      "mkdir " + folder.string());
}

bool named(Db& db, std::string_view digest) {
  return db.prepare("SELECT 1 FROM blob WHERE digest=? LIMIT 1").bind(1, digest).step();
}

}  // namespace

bool valid_digest(std::string_view digest) {
  return digest.size() == 64 && std::all_of(digest.begin(), digest.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Blobs::Blobs(fs::path folder, Rows rows) : folder_(std::move(folder)), rows_(std::move(rows)) {
  ensure_folder(folder_);
}

fs::path Blobs::path_of(std::string_view digest) const {
  return folder_ / digest.substr(0, 2) / digest;
}

std::string Blobs::put(std::string_view owner, std::string_view bytes) {
  const std::string digest = crypto::hex(crypto::sha256(bytes));
  std::lock_guard lock(mutex_);
  const fs::path path = path_of(digest);
  if (!fs::exists(path)) {
    ensure_folder(path.parent_path());
    write_file_durably(path, bytes, 0600);
  }
  rows_([&](Db& db) {
    db.prepare("INSERT OR IGNORE INTO blob VALUES (?,?)").bind_all(digest, owner).run();
  });
  return digest;
}

std::string Blobs::get(std::string_view digest) const {
  if (!valid_digest(digest)) throw Error(Code::not_found, "no blob has this digest");
  try {
    return read_file(path_of(digest), size_t{1} << 30);
  } catch (const Error& e) {
    if (e.code() == Code::not_found) throw Error(Code::not_found, "no blob " + std::string(digest));
    throw;
  }
}

void Blobs::remove(std::string_view owner) {
  std::lock_guard lock(mutex_);
  std::vector<std::string> unnamed;
  rows_([&](Db& db) {
    unnamed.clear();
    std::vector<std::string> digests;
    {
      Stmt rows = db.prepare("SELECT digest FROM blob WHERE owner=?");
      rows.bind(1, owner);
      while (rows.step()) digests.push_back(rows.text(0));
    }
    db.prepare("DELETE FROM blob WHERE owner=?").bind(1, owner).run();
    for (const std::string& digest : digests)
      if (!named(db, digest)) unnamed.push_back(digest);
  });
  for (const std::string& digest : unnamed) ::unlink(path_of(digest).c_str());
}

void Blobs::sweep(Db& db) {
  for (const auto& below : fs::directory_iterator(folder_)) {
    if (!below.is_directory()) continue;
    for (const auto& entry : fs::directory_iterator(below.path()))
      if (!named(db, entry.path().filename().string())) fs::remove(entry.path());
  }
}

}  // namespace umpteenth::store
