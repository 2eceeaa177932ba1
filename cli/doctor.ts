import type { Command } from 'commander'
import { type Config, ConfigError, loadConfig } from '../src/config.ts'
import type { Database } from '../src/db/db.ts'
import { newCommand, printResult } from './command.ts'
import { checkCells } from './doctor/cells.ts'
import {
  checkClock,
  checkDistribution,
  checkFollowers,
  checkKeys,
  checkMigrations,
  checkServer,
  checkWebhooks,
} from './doctor/database.ts'
import { type Finding, ok, runCheck, warning, wrong } from './doctor/finding.ts'
import { checkDataFolder, checkIssuer, checkTls } from './doctor/machine.ts'
import { withStorage } from './doctor/storage.ts'

export function doctorCommand(environment: NodeJS.ProcessEnv): Command {
  const description =
    'Checks configuration, database, keys and files, and says how to fix each problem. Changes nothing. Exits with 1 if a ' +
    'check is wrong; a warning does not change the exit code.'
  return newCommand('doctor', description, ['doctor', 'doctor --json']).action(async (options: { json?: boolean }) => {
    const findings = await examine(environment)
    const healthy = findings.every(({ verdict }) => verdict !== 'wrong')
    printResult(options, { value: { healthy, findings }, lines: findings.flatMap(linesOf) })
    if (!healthy) process.exitCode = 1
  })
}

const linesOf = ({ check, verdict, message, advice }: Finding): string[] => [
  `${verdict.padEnd(8)} ${check.padEnd(13)} ${message}`,
  ...(advice === undefined ? [] : [`${' '.repeat(23)}→ ${advice}`]),
]

async function examine(environment: NodeJS.ProcessEnv): Promise<Finding[]> {
  const config = readConfiguration(environment)
  if (Array.isArray(config)) return config
  return [
    ok('configuration', 'the environment is valid'),
    ...(await checkDataFolder(config)),
    ...(await checkTls(config)),
    ...(await checkIssuer(config)),
    ...(await checkDatabase(config)),
  ]
}

/** The configuration, or one finding per invalid setting. Without a configuration no other check can run. */
function readConfiguration(environment: NodeJS.ProcessEnv): Config | Finding[] {
  try {
    return loadConfig(environment)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const advice = 'Set the variable as docs/configuration.md says, or remove it from the environment.'
    return error.problems.map(problem => wrong('configuration', problem, advice))
  }
}

async function checkDatabase(config: Config): Promise<Finding[]> {
  const isEmbedded = config.databaseUrl === undefined
  const advice = isEmbedded ? 'See server.log in the data folder.' : 'Check DATABASE_URL, and that the server runs.'
  return runCheck('database', advice, async () => {
    const found = await withStorage(config, db => checkAll(db, config))
    return found ?? [warning('database', 'there is no data yet', 'Nothing to do: the first start creates it.')]
  })
}

async function checkAll(db: Database, config: Config): Promise<Finding[]> {
  const advice = 'See the server’s log.'
  return [
    ...(await runCheck('database', advice, () => checkServer(db, config))),
    ...(await runCheck('migrations', advice, () => checkMigrations(db))),
    ...(await runCheck('cluster', advice, () => checkDistribution(db))),
    ...(await runCheck('clock', advice, () => checkClock(db))),
    ...(await runCheck('keys', advice, () => checkKeys(db))),
    ...(await runCheck('followers', advice, () => checkFollowers(db))),
    ...(await runCheck('webhooks', advice, () => checkWebhooks(db))),
    ...(await runCheck('cells', advice, () => checkCells(db, config))),
  ]
}
