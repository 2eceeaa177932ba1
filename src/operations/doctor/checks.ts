import type { Database } from '../../db/db.ts'
import type { Config } from '../../process/config.ts'
import { checkArchive } from './archive.ts'
import {
  checkBackup,
  checkClock,
  checkDistribution,
  checkFollowers,
  checkKeys,
  checkMigrations,
  checkServer,
  checkTransactions,
  checkWebhooks,
} from './database.ts'
import { type Finding, type OrganizationFinding, runCheck } from './finding.ts'
import { checkIndexes } from './indexes.ts'
import { checkDataFolder, checkIssuer, checkTls } from './machine.ts'
import { checkMasterKey } from './master-key.ts'

/** The checks of this machine, and of the external issuer that it reaches. */
export async function checkMachine(config: Config): Promise<Finding[]> {
  return [
    ...(await checkDataFolder(config)),
    ...(await checkTls(config)),
    ...(await checkIssuer(config)),
    ...(await checkArchive(config)),
  ]
}

/** The checks of the database. A check that throws is `wrong`. */
export async function checkStorage(db: Database, config: Config): Promise<OrganizationFinding[]> {
  const advice = 'See the server’s log.'
  return [
    ...(await runCheck('database', advice, () => checkServer(db, config))),
    ...(await runCheck('migrations', advice, () => checkMigrations(db))),
    ...(await runCheck('cluster', advice, () => checkDistribution(db))),
    ...(await runCheck('clock', advice, () => checkClock(db))),
    ...(await runCheck('keys', advice, () => checkKeys(db))),
    ...(await runCheck('master key', 'See docs/keys.md.', () => checkMasterKey(db, config))),
    ...(await runCheck('backup', advice, () => checkBackup(db, config))),
    ...(await runCheck('transactions', advice, () => checkTransactions(db))),
    ...(await runCheck('indexes', advice, () => checkIndexes(db))),
    ...(await runCheck('followers', advice, () => checkFollowers(db))),
    ...(await runCheck('webhooks', advice, () => checkWebhooks(db))),
  ]
}

/** The finding as the operator of the service sees it. Its message names the organization. */
export const withoutOrganization = ({ organization: _, ...finding }: OrganizationFinding): Finding => finding
