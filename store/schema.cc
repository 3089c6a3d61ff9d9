#include "store/tables.h"

namespace umpteenth::store {

// One entry a version; user_version counts those applied. Entries never change once released.
const std::vector<std::string>& schema_migrations() {
  static const std::vector<std::string> kMigrations = {R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Every object as it is served. Of kinds in git `file` is the id of the blob that json was made
-- from, or, where invalid = 1, of the one that was refused while json stays in force.
CREATE TABLE object (
  kind TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL,
  revision INTEGER NOT NULL, file BLOB NOT NULL, invalid INTEGER NOT NULL, json TEXT NOT NULL,
  PRIMARY KEY (kind, ns, name)
) WITHOUT ROWID;

-- Derived from git, a generation at a time.
CREATE TABLE history (
  kind TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
  commit_id BLOB NOT NULL, seconds INTEGER NOT NULL, verb INTEGER NOT NULL,
  actor TEXT NOT NULL, message TEXT NOT NULL,
  PRIMARY KEY (kind, ns, name, revision)
) WITHOUT ROWID;

-- Packs known to be whole. retired: joined into another one, to be unlinked.
CREATE TABLE pack (name TEXT PRIMARY KEY, own INTEGER NOT NULL, retired INTEGER NOT NULL)
  WITHOUT ROWID;

CREATE TABLE timeline (owner TEXT NOT NULL, seq INTEGER NOT NULL, json TEXT NOT NULL,
  PRIMARY KEY (owner, seq)) WITHOUT ROWID;
CREATE TABLE row (space TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
  PRIMARY KEY (space, key)) WITHOUT ROWID;
CREATE TABLE blob (digest TEXT NOT NULL, owner TEXT NOT NULL,
  PRIMARY KEY (digest, owner)) WITHOUT ROWID;
CREATE INDEX blob_owner ON blob (owner);
)sql"};
  return kMigrations;
}

}  // namespace umpteenth::store
