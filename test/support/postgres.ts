import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { commandLine } from '../../src/db/embedded/processes.ts'
import { startEmbedded, urlOfDatabase } from '../../src/db/embedded.ts'
import { migrate } from '../../src/db/migrate.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of a database whose user may create others. */
    postgresAdminUrl: string
    /** Name of a migrated, empty database to copy. */
    postgresTemplate: string
  }
}

/** Folders of a run in the temporary one bear its pid after this. */
const folderPrefix = 'kith-test-'

/**
 * One PostgreSQL for the whole run: the server of KITH_TEST_DATABASE_URL (15 to 18), else an embedded one, with fsync
 * on as in service. Returns the teardown.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.KITH_TEST_DATABASE_URL
  const server = given ? { url: given, stop: async () => {} } : await startServer()
  const template = `kith_template_${randomBytes(6).toString('hex')}`
  const teardown = async () => {
    await administer(server.url, `drop database if exists ${template} with (force)`)
    await server.stop()
  }
  try {
    await administer(server.url, `create database ${template}`)
    await migrate(urlOfDatabase(server.url, template))
  } catch (error) {
    await teardown()
    throw error
  }
  project.provide('postgresAdminUrl', server.url)
  project.provide('postgresTemplate', template)
  return teardown
}

async function startServer(): Promise<{ url: string; stop(): Promise<void> }> {
  await removeLeftovers()
  const dataDir = await mkdtemp(join(tmpdir(), `${folderPrefix}${process.pid}-`))
  // Root's server runs as another user, who has to pass through.
  await chmod(dataDir, 0o711)
  const database = await startEmbedded({ dataDir, purpose: 'serve', log: () => {} })
  return {
    url: database.url,
    stop: async () => {
      await database.stop()
      await rm(dataDir, { recursive: true })
    },
  }
}

/** A server that was left behind and does not answer must not hold this run. */
const leftoverLimitMs = 20_000

/** Ends and removes the servers of earlier runs that were killed before their teardown. */
async function removeLeftovers() {
  for (const name of await readdir(tmpdir())) {
    const maker = new RegExp(`^${folderPrefix}(\\d+)-`).exec(name)?.[1]
    if (maker === undefined || (await commandLine(Number(maker))) !== '') continue
    const folder = join(tmpdir(), name)
    // The tests of the embedded PostgreSQL itself have theirs one level below.
    const dataDir = existsSync(join(folder, '.kith')) ? join(folder, '.kith') : folder
    try {
      const signal = AbortSignal.timeout(leftoverLimitMs)
      await (await startEmbedded({ dataDir, purpose: 'command', log: () => {}, signal })).stop()
      await rm(folder, { recursive: true })
    } catch {
      // Another user's, or another run removes it at this moment, or its server does not answer.
    }
  }
}

async function administer(url: string, text: string) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(text).finally(() => client.end())
}
