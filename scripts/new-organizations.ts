// Creates organizations in the database of this machine, and prints a token of each with all scopes, a line each. The tests of the Python
// client need several, and a process of the command line for each of them would take longer than the tests.
//   node scripts/new-organizations.ts shop news

import { makeTokenForOthers } from '../cli/connection.ts'
import { withSession } from '../cli/session.ts'
import { createOrganization } from '../src/organizations/organizations.ts'
import { scopes } from '../src/route/scopes.ts'

await withSession(process.env, async session => {
  for (const org of process.argv.slice(2)) {
    await createOrganization(session.db, org)
    const token = { org, scope: scopes.join(' '), role: undefined, ttl: 3_600, subject: 'tests' }
    console.log(await makeTokenForOthers(session, token))
  }
})
