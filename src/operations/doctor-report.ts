import type { Database } from '../db/db.ts'
import { shareFor } from '../instruments/single-flight.ts'
import type { Config } from '../process/config.ts'
import { type Signal, untilAborted } from '../process/signal.ts'
import { readLastBackup } from './backups.ts'
import { checkArchive } from './doctor/archive.ts'
import {
  checkBackup,
  checkClock,
  checkDistribution,
  checkFollowers,
  checkIndexes,
  checkKeys,
  checkMigrations,
  checkServer,
  checkTransactions,
  checkWebhooks,
} from './doctor/database.ts'
import { type Finding, type OrganizationFinding, ok, runCheck, warning, wrong } from './doctor/finding.ts'
import { checkDataFolder, checkIssuer, checkTls } from './doctor/machine.ts'
import { checkMasterKey } from './doctor/master-key.ts'
import type { DoctorReportShape } from './schema.ts'

/**
 * Requests within this time after a run share its findings. A run queries PostgreSQL, the disk and the external issuer.
 */
const cacheMs = 5_000

type Run = Pick<DoctorReportShape, 'checked_at' | 'last_backup_at'> & { findings: OrganizationFinding[] }

/**
 * Returns a function that runs the checks of `kith doctor` in the service, and returns the report for an organization.
 * If the signal aborts first, it rejects with the signal's reason. All requests share one run at a time. The report
 * names only the caller's organization and counts the findings about others.
 */
export function createDoctor(db: Database, config: Config) {
  const examine = shareFor(cacheMs, async (): Promise<Run> => {
    const findings: OrganizationFinding[] = [
      ok('configuration', 'the environment is valid'),
      ...(await checkMachine(config)),
      ...(await checkStorage(db, config)),
    ]
    // If the database does not respond, the findings report it.
    const seconds = await readLastBackup(db).catch(() => null)
    const last_backup_at = seconds === null ? null : new Date(seconds * 1_000).toISOString()
    return { checked_at: new Date().toISOString(), last_backup_at, findings }
  })

  return async (organizationKey: string, signal: Signal): Promise<DoctorReportShape> => {
    // A check may wait for an unresponsive database. It continues for later requests.
    const { checked_at, last_backup_at, findings } = await untilAborted(examine(), signal)
    const shown = [
      ...findings.filter(({ organization = organizationKey }) => organization === organizationKey),
      ...countOthers(findings.filter(({ organization = organizationKey }) => organization !== organizationKey)),
    ]
    return {
      checked_at,
      healthy: findings.every(({ verdict }) => verdict !== 'wrong'),
      last_backup_at,
      findings: shown.map(withoutOrganization).map(({ advice = null, ...finding }) => ({ ...finding, advice })),
    }
  }
}

/** One finding for each check that has findings about other organizations, with the worst of their verdicts. */
function countOthers(findings: OrganizationFinding[]): Finding[] {
  const byCheck = Map.groupBy(findings, ({ check }) => check)
  return [...byCheck].map(([check, found]) => {
    const build = found.some(({ verdict }) => verdict === 'wrong') ? wrong : warning
    const subject =
      found.length === 1
        ? '1 finding concerns another organization'
        : `${found.length} findings concern other organizations`
    return build(check, subject, 'Run kith doctor on the machine of the service. It names them.')
  })
}

/** The checks of this machine, and of the external issuer as reached from it. */
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

/** The finding in the form for the operator of the service. Its message names the organization. */
export const withoutOrganization = ({ organization: _, ...finding }: OrganizationFinding): Finding => finding
