import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BenchPostgres, Service } from './environment.ts'
import { parsePgbench, parseWrk, type Run, runProgram } from './measure.ts'
import type { Populated } from './populate.ts'
import type { BenchRow } from './rows.ts'

const requestsScript = fileURLToPath(new URL('lua/requests.lua', import.meta.url))
let runs = 0

/** Sends requests of the row's kind with wrk. Throws if a response is unsuccessful. */
export async function loadService(
  service: Service,
  { kind, connections }: BenchRow,
  { people, token, consentTypeIds }: Populated,
  seconds: number,
): Promise<Run> {
  runs += 1
  const environment = {
    PATH: process.env.PATH,
    KIND: kind,
    TOKEN: token,
    PEOPLE: `${people}`,
    CONSENT_TYPES: consentTypeIds.join(','),
    RUN: `${process.pid}-${runs}`,
  }
  const words = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', requestsScript, service.address]
  return parseWrk(await runProgram('wrk', words, environment))
}

/** Runs the bare statement with pgbench. Throws if a transaction fails. */
export async function loadPostgres(
  postgres: BenchPostgres,
  service: Service,
  sql: string,
  clients: number,
  { id, people }: Populated,
  seconds: number,
): Promise<Run> {
  const script = join(postgres.folder, 'script.sql')
  await writeFile(script, sql)
  const { username, password, pathname, searchParams, hostname, port } = new URL(service.url)
  const environment = {
    PATH: process.env.PATH,
    PGHOST: searchParams.get('host') ?? hostname,
    PGPORT: port,
    PGUSER: decodeURIComponent(username),
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: pathname.slice(1),
  }
  const threads = Math.min(clients, 2)
  const variables = ['-D', `organization=${id}`, '-D', `people=${people}`]
  const words = ['-n', '-M', 'prepared', `-c${clients}`, `-j${threads}`, `-T${seconds}`, ...variables, '-f', script]
  return parsePgbench(await runProgram('pgbench', words, environment))
}
