import { symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Cleanup } from './cleanup.ts'
import { inDatabase } from './database.ts'
import { type BenchPostgres, type Service, startService } from './environment.ts'
import { loadCounted } from './load.ts'
import { runProgram } from './measure.ts'
import { type Population, populate, randomOf } from './population.ts'
import { type BenchRequest, headersOf, type Target, UnexpectedResponse } from './requests.ts'

/** A revision of kith with its own database, its running service and the people in it. */
export class Side implements Target, Population {
  readonly name: string
  readonly postgres: BenchPostgres
  readonly people: number
  readonly consentTypeIds: readonly number[]
  readonly ids: readonly string[]
  readonly organizationId: number
  #service: Service
  readonly #start: () => Promise<Service>
  #names = 0

  private constructor(
    name: string,
    postgres: BenchPostgres,
    start: () => Promise<Service>,
    service: Service,
    organizationId: number,
    { people, consentTypeIds, ids }: Population,
  ) {
    this.name = name
    this.postgres = postgres
    this.#start = start
    this.#service = service
    this.organizationId = organizationId
    this.people = people
    this.consentTypeIds = consentTypeIds
    this.ids = ids
  }

  /** Starts the service of a checkout on a new database, and imports people. */
  static async open(
    { postgres, acquire }: { postgres: BenchPostgres; acquire: Cleanup['acquire'] },
    { name, checkout, people, workers }: { name: string; checkout: string; people: number; workers: number },
  ): Promise<Side> {
    const database = `side_${name}`
    await postgres.createDatabase(database)
    const start = () =>
      acquire(
        () => startService(postgres, checkout, database, workers, { KITH_WEBHOOK_ALLOW: '127.0.0.0/8' }),
        service => service.stop(),
      )
    const service = await start()
    const { rows } = await inDatabase(service.url, client =>
      client.query<{ id: number }>(`select id from organizations where key = 'default'`),
    )
    return new Side(name, postgres, start, service, rows[0]!.id, await populate(service, service.url, people))
  }

  get service(): Service {
    return this.#service
  }

  get address(): string {
    return this.#service.address
  }

  get token(): string {
    return this.#service.token
  }

  /** Waits until the index of the search has reached the head of the log. A revision may have none. */
  async settle(): Promise<void> {
    await inDatabase(this.service.url, async client => {
      const { rows } = await client.query<{ exists: boolean }>(`select to_regclass('followers') is not null as exists`)
      while (rows[0]!.exists && (await client.query(behindSql)).rows.length > 0) await setTimeout(50)
    })
  }

  /** Replaces the process of the service by a new one. */
  async restart(): Promise<void> {
    await this.#service.stop()
    this.#service = await this.#start()
  }

  stop(): Promise<void> {
    return this.#service.stop()
  }

  randomPerson(): string {
    return `p${1 + Math.floor(Math.random() * this.people)}`
  }

  randomId(): string {
    return randomOf(this.ids)
  }

  /** A name that no person had. */
  uniqueName(): string {
    this.#names += 1
    return `n${process.pid}-${this.#names}`
  }

  /** Sends each request once. */
  async sendAll(requests: readonly BenchRequest[], connections = 64): Promise<void> {
    const all = requests.values()
    await loadCounted(this, { next: () => all.next().value!, count: requests.length, connections })
  }

  /** Sends a request whose response is a stream of lines. Returns their number. */
  async countLines(request: BenchRequest): Promise<number> {
    const { method, path, body } = request
    const response = await fetch(this.address + path, {
      method,
      headers: headersOf(this, request),
      body: body ? JSON.stringify(body) : null,
    })
    if (!response.ok) throw new UnexpectedResponse(request, response.status, await response.text())
    let count = 0
    for await (const _ of createInterface({ input: Readable.fromWeb(response.body as ReadableStream) })) count += 1
    return count
  }
}

const behindSql = `select f.name from followers f join change_heads h using (organization_id)
  where f.name = 'search' and f.sequence < h.sequence`

export const checkout = fileURLToPath(new URL('..', import.meta.url))
const git = (...words: string[]) => runProgram('git', ['-C', checkout, ...words], process.env)

export const readCommit = async (revision: string): Promise<string> =>
  (await git('rev-parse', '--verify', `${revision}^{commit}`)).trim()

/** Checks a commit out in a folder with its packages. */
export async function addCheckout(folder: string, commit: string, acquire: Cleanup['acquire']): Promise<string> {
  await acquire(
    () => git('worktree', 'add', '--detach', folder, commit),
    async () => {
      // The folder may be a link to the packages of this checkout. The removal must not follow it.
      await unlink(join(folder, 'node_modules')).catch(() => {})
      await git('worktree', 'remove', '--force', folder)
    },
  )
  const hasSamePackages = (await git('diff', '--stat', commit, '--', 'package-lock.json')) === ''
  if (hasSamePackages) await symlink(join(checkout, 'node_modules'), join(folder, 'node_modules'))
  else await runProgram('npm', ['--prefix', folder, 'ci', '--silent'], process.env)
  return folder
}
