import { type Finding, ok, runCheck, warning, wrong } from '../src/operations/doctor/finding.ts'
import { checkMachine, checkStorage, withoutOrganization } from '../src/operations/doctor-report.ts'
import { type Config, ConfigError, loadConfig } from '../src/process/config.ts'
import { withStorage } from './doctor/storage.ts'
import { newCommand } from './kith-command.ts'

export const doctorCommand = (environment: NodeJS.ProcessEnv) =>
  newCommand(
    environment,
    'doctor',
    'Checks configuration, database, keys and files, and says how to fix each problem. Changes nothing. Exits with 1 if a ' +
      'check is wrong; a warning does not change the exit code.',
  )
    .examples('doctor', 'doctor --json')
    .action(async () => {
      const findings = await examine(environment)
      const healthy = findings.every(({ verdict }) => verdict !== 'wrong')
      if (!healthy) process.exitCode = 1
      return { value: { healthy, findings }, lines: findings.flatMap(linesOf) }
    })

/** The lines that show a finding. */
export const linesOf = ({ check, verdict, message, advice }: Finding): string[] => [
  `${verdict.padEnd(8)} ${check.padEnd(13)} ${message}`,
  ...(advice === undefined ? [] : [`${' '.repeat(23)}→ ${advice}`]),
]

async function examine(environment: NodeJS.ProcessEnv): Promise<Finding[]> {
  const config = readConfiguration(environment)
  if (Array.isArray(config)) return config
  return [
    ok('configuration', 'the environment is valid'),
    ...(await checkMachine(config)),
    ...(await checkDatabase(config)),
  ]
}

/** Returns the configuration, or one finding per invalid setting. The other checks need the configuration. */
function readConfiguration(environment: NodeJS.ProcessEnv): Config | Finding[] {
  try {
    return loadConfig(environment)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const advice = 'Set the variable as docs/configuration.md says, or remove it from the environment.'
    return error.problems.map(problem => wrong('configuration', problem, advice))
  }
}

/** Checks the database and its data. */
export async function checkDatabase(config: Config): Promise<Finding[]> {
  const isEmbedded = config.databaseUrl === undefined
  const advice = isEmbedded ? 'See server.log in the data folder.' : 'Check DATABASE_URL, and that the server runs.'
  return runCheck('database', advice, async () => {
    const found = await withStorage(config, db => checkStorage(db, config))
    return (
      found?.map(withoutOrganization) ?? [
        warning('database', 'there is no data yet', 'Nothing to do: the first start creates it.'),
      ]
    )
  })
}
