// From the folders in git, the rows in SQLite and the journal to the records in force.
#pragma once

#include "store/recovery.h"

namespace umpteenth::store {

// known: the commit that the rows stand at. Writes what rows were missing.
void load_objects(ObjectReader& reader, Database& database,
                  const std::vector<JournalRecord>& journal, const std::optional<Oid>& known,
                  Recovered& recovered);

}  // namespace umpteenth::store
