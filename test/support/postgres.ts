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
import { folderPrefix } from './temporary-files.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of a database whose user may create databases. */
    postgresAdminUrl: string
    /** The name of a migrated, empty database to copy. */
    postgresTemplate: string
  }
}

/**
 * Starts one PostgreSQL for the whole run: the server of KITH_TEST_DATABASE_URL (version 15 to 18), or else an embedded
 * one, with fsync on as in production. Returns the teardown.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const givenUrl = process.env.KITH_TEST_DATABASE_URL
  const server = givenUrl ? { url: givenUrl, stop: async () => {} } : await startServer()
  const template = `kith_template_${randomBytes(6).toString('hex')}`
  const teardown = async () => {
    // Databases of services that ended with their worker are left.
    const left = `select datname from pg_database where datname like '${testDatabasePrefix(template)}%'`
    const names = await administer(server.url, left)
    for (const { datname } of [...names, { datname: template }])
      await administer(server.url, `drop database if exists ${datname} with (force)`)
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

/** How the names of the databases of tests begin that are copied from this template. */
export const testDatabasePrefix = (template: string): string => template.replace('template', 'test')

/**
 * Creating and dropping a database searches all buffers. With 6 GB of them, a file's database took 0.11 s of processor time, and
 * with this size it takes 0.06.
 */
const sharedBuffersMb = 256

async function startServer(): Promise<{ url: string; stop(): Promise<void> }> {
  await removeLeftovers()
  const dataDir = await mkdtemp(join(tmpdir(), `${folderPrefix}${process.pid}-`))
  // As root, the server runs as another user, who has to enter the folder.
  await chmod(dataDir, 0o711)
  const database = await startEmbedded({ dataDir, purpose: 'serve', log: () => {}, sharedBuffersMb })
  return {
    url: database.url,
    stop: async () => {
      await database.stop()
      await rm(dataDir, { recursive: true })
    },
  }
}

/** The time that a run waits for a leftover server that does not answer. */
const leftoverTimeoutMs = 20_000

/** Stops and removes the servers of earlier runs that were killed before their teardown. */
async function removeLeftovers() {
  for (const name of await readdir(tmpdir())) {
    const pid = new RegExp(`^${folderPrefix}(\\d+)-`).exec(name)?.[1]
    if (pid === undefined || (await commandLine(Number(pid))) !== '') continue
    const folder = join(tmpdir(), name)
    // The tests of the embedded PostgreSQL have their data one level below.
    const dataDir = [folder, join(folder, '.kith')].find(each => existsSync(join(each, 'postgresql')))
    try {
      const signal = AbortSignal.timeout(leftoverTimeoutMs)
      if (dataDir) await (await startEmbedded({ dataDir, purpose: 'command', log: () => {}, signal })).stop()
      await rm(folder, { recursive: true })
    } catch {
      // The folder belongs to another user, another run removes it now, or its server does not answer.
    }
  }
}

async function administer(url: string, text: string): Promise<{ datname: string }[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  const { rows } = await client.query(text).finally(() => client.end())
  return rows
}
