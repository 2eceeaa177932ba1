import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createZstdCompress } from 'node:zlib'
import S3rver from 's3rver'
import * as tar from 'tar-stream'
import { afterEach, describe, expect, it } from 'vitest'
import { type Base, listBases, partName, readPosition, writeBase, writePosition } from '../../src/db/archive/archive.ts'
import { copyBase } from '../../src/db/archive/base.ts'
import { openStore, type Store } from '../../src/db/archive/store.ts'
import { startEmbedded } from '../../src/db/embedded.ts'
import { parseArchiveAddress, type S3Settings } from '../../src/process/archive-address.ts'
import { exists, killServer, query, until } from '../support/embedded-service.ts'
import {
  endProcesses,
  type Kith,
  launch,
  makeDataFolder,
  makeFolder,
  senderTo,
  terminate,
  tokenFrom,
} from '../support/process.ts'

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await endProcesses()
  for (const stop of stops.splice(0)) await stop()
})

type Environment = Record<string, string>
type Place = { name: string; environment: Environment; store: Store }

const credentials = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' }

function placeOf(name: string, environment: Environment): Place {
  const settings = { AWS_REGION: 'us-east-1', ...environment } as S3Settings
  const address = parseArchiveAddress(environment.KITH_ARCHIVE!, settings)
  if (typeof address === 'string') throw new Error(address)
  return { name, environment: { ...environment, KITH_ARCHIVE_SECONDS: '1' }, store: openStore(address) }
}

async function makeFolderPlace(): Promise<Place> {
  return placeOf('a folder', { KITH_ARCHIVE: await makeFolder() })
}

/** A store of S3, which `restart` brings back at its address. */
async function startBucket(): Promise<Place & { close(): Promise<void>; restart(): Promise<void> }> {
  const directory = await makeFolder()
  const run = async (port: number) => {
    const s3 = new S3rver({
      address: '127.0.0.1',
      port,
      silent: true,
      directory,
      configureBuckets: [{ name: 'archive', configs: [] }],
    })
    const address = (await s3.run()) as AddressInfo
    return { s3, port: address.port }
  }
  let running = await run(0)
  const { port } = running
  const close = async () => {
    const closed = running.s3.close()
    // A connection that has a request is kept, and the service would use it again.
    running.s3.httpServer.closeAllConnections()
    await closed
  }
  stops.push(() => close().catch(() => {}))
  const environment = {
    KITH_ARCHIVE: 's3://archive/kith/one',
    KITH_ARCHIVE_ENDPOINT: `http://127.0.0.1:${port}`,
    ...credentials,
  }
  const restart = async () => {
    running = await run(port)
  }
  return { ...placeOf('a bucket', environment), close, restart }
}

/** A write, with the times of its request and of its acknowledgement by the clock of this machine. */
type Write = { id: string; begunMs: number; acknowledgedMs: number | undefined }

/** Writes people, each by a request, until the service is gone or `stop`. */
function startWriters(address: string, token: string, journal: Write[]) {
  const send = senderTo(address, token)
  let isStopped = false
  const writers = Array.from({ length: 4 }, async () => {
    while (!isStopped) {
      const write: Write = { id: `w${journal.length}`, begunMs: Date.now(), acknowledgedMs: undefined }
      journal.push(write)
      const reply = await send('POST', '/v1/people', { external_id: write.id }).catch(() => undefined)
      // Without an answer, and after a 503, the write may be stored or not.
      if (!reply || reply.status === 503) continue
      if (reply.status !== 201) throw new Error(JSON.stringify(reply.body))
      write.acknowledgedMs = Date.now()
    }
  })
  return async () => {
    isStopped = true
    await Promise.all(writers)
  }
}

const countAcknowledged = (journal: Write[]) =>
  journal.filter(({ acknowledgedMs }) => acknowledgedMs !== undefined).length

const serve = async (environment: Environment): Promise<{ kith: Kith; address: string }> => {
  const kith = launch(environment)
  return { kith, address: await kith.ready }
}

const kithOf = async (environment: Environment, ...words: string[]) => {
  const { ended, output } = launch(environment, words)
  return { code: await ended, ...output }
}

/** The people in a data folder that no service uses. */
async function readPeople(dataDir: string): Promise<Set<string>> {
  const { url, stop } = await startEmbedded({ dataDir, purpose: 'command', log: () => {} })
  const rows = await query(url, 'select external_id from entities').finally(stop)
  return new Set(rows.map(({ external_id }) => external_id as string))
}

/** Restores into a new folder with the program, and returns the people there. */
async function restorePeople({ environment }: Place, at?: number): Promise<Set<string>> {
  const dataDir = join(await makeFolder(), '.kith')
  const words = at === undefined ? ['--from', environment.KITH_ARCHIVE!] : ['--at', new Date(at).toISOString()]
  const restored = await kithOf({ ...environment, KITH_DATA_DIR: dataDir }, 'restore', ...words)
  expect({ code: restored.code, stderr: restored.stderr }).toEqual({ code: 0, stderr: expect.any(String) })
  return readPeople(dataDir)
}

const hasBase = ({ store }: Place) => until(async () => (await listBases(store)).length > 0)

/** The writes that a restore to a moment must have and has not, and those that it must not have and has. */
const wrongAt = (journal: Write[], people: Set<string>, at: number) => ({
  missing: journal.filter(write => write.acknowledgedMs! < at && !people.has(write.id)).map(({ id }) => id),
  tooMany: journal.filter(write => write.begunMs > at && people.has(write.id)).map(({ id }) => id),
})

const nothing = { missing: [], tooMany: [] }

describe('an archive', { timeout: 400_000 }, () => {
  it.each(['folder', 'bucket'])('in a %s restores every second of a service that is killed under load', async kind => {
    const place: Place = kind === 'folder' ? await makeFolderPlace() : await startBucket()
    const dataDir = await makeDataFolder()
    const environment = { ...place.environment, KITH_DATA_DIR: dataDir }
    const journal: Write[] = []
    const moments: number[] = []
    let { kith, address } = await serve(environment)
    const token = await tokenFrom({ KITH_DATA_DIR: dataDir })
    await hasBase(place)
    for (let round = 0; round < 2; round += 1) {
      const stopWriters = startWriters(address, token, journal)
      const before = countAcknowledged(journal)
      await until(() => countAcknowledged(journal) > before + 10)
      moments.push(Date.now())
      await setTimeout(Math.random() * 1_500)
      if (round === 0) kith.child.kill('SIGKILL')
      await killServer(join(dataDir, 'postgresql'))
      if (round === 1) kith.child.kill('SIGKILL')
      await Promise.all([kith.ended, stopWriters()])
      const started = await serve(environment)
      kith = started.kith
      address = started.address
    }
    const stopWriters = startWriters(address, token, journal)
    const before = countAcknowledged(journal)
    await until(() => countAcknowledged(journal) > before + 10)
    await stopWriters()
    const stoppedMs = Date.now() + 1
    expect(await terminate(kith)).toBe(0)
    const at = moments[Math.floor(Math.random() * moments.length)]!
    const people = await restorePeople(place, at)
    expect({ moments, at, ...wrongAt(journal, people, at) }).toEqual({ moments, at, ...nothing })
    expect(people.size).toBeGreaterThan(10)
    const all = await restorePeople(place)
    expect(wrongAt(journal, all, stoppedMs)).toEqual(nothing)
    expect(all).toEqual(await readPeople(dataDir))
  })

  it('goes on with a restored copy, refuses the original, and still restores seconds of the original', async () => {
    const place = await makeFolderPlace()
    const original = { ...place.environment, KITH_DATA_DIR: await makeDataFolder() }
    const first = await serve(original)
    const send = senderTo(first.address, await tokenFrom({ KITH_DATA_DIR: original.KITH_DATA_DIR }))
    await hasBase(place)
    await send('POST', '/v1/people', { external_id: 'before' })
    const at = Date.now() + 1
    await until(() => Date.now() > at)
    await send('POST', '/v1/people', { external_id: 'after' })
    await terminate(first.kith)
    const copy = { ...place.environment, KITH_DATA_DIR: join(await makeFolder(), '.kith') }
    const restored = await kithOf(copy, 'restore', '--at', new Date(at).toISOString(), '--json')
    expect(JSON.parse(restored.stdout)).toMatchObject({ at: new Date(at).toISOString(), ran: [] })
    expect(restored.stderr).toContain('are wrapped by the master key')
    await writeFile(
      join(copy.KITH_DATA_DIR, 'master.key'),
      await readFile(join(original.KITH_DATA_DIR, 'master.key')),
      { mode: 0o600 },
    )
    const second = await serve(copy)
    const sendToCopy = senderTo(second.address, await tokenFrom({ KITH_DATA_DIR: copy.KITH_DATA_DIR }))
    expect((await sendToCopy('POST', '/v1/people', { external_id: 'again' })).status).toBe(201)
    await until(async () => (await listBases(place.store)).some(({ timeline }) => timeline === 2))
    expect(await terminate(second.kith)).toBe(0)
    const refused = launch(original)
    expect(await refused.ended).toBe(1)
    expect(refused.output.stdout + refused.output.stderr).toContain('is the archive of another copy of these data')
    expect(await restorePeople(place, at)).toEqual(new Set(['before']))
    expect(await restorePeople(place)).toEqual(new Set(['before', 'again']))
  })

  it('that is away lets the service go on, is reported, and loses nothing', async () => {
    const place = await startBucket()
    const environment = { ...place.environment, KITH_DATA_DIR: await makeDataFolder() }
    const { kith, address } = await serve(environment)
    const send = senderTo(address, await tokenFrom({ KITH_DATA_DIR: environment.KITH_DATA_DIR }))
    await hasBase(place)
    await place.close()
    await until(() => kith.output.stdout.includes('archiving failed and will be retried'))
    expect((await send('POST', '/v1/people', { external_id: 'meanwhile' })).status).toBe(201)
    const doctor = await kithOf(environment, 'doctor')
    expect(doctor.stdout).toMatch(/wrong {4}restore point +the store at http:\S+ does not respond \(ECONNREFUSED\)/)
    await place.restart()
    await until(() => kith.output.stdout.includes('the archive is back'))
    expect((await kithOf(environment, 'doctor')).stdout).toMatch(/ok {7}restore point/)
    expect(await (await fetch(`${address}/metrics`)).text()).toMatch(/^kith_archive_age_seconds [\d.]+$/m)
    expect(await terminate(kith)).toBe(0)
    expect(await restorePeople(place)).toEqual(new Set(['meanwhile']))
  })

  it('takes a copy on command, lists it, and refuses moments that it does not have', async () => {
    const place = await makeFolderPlace()
    const environment: Environment = { ...place.environment, KITH_DATA_DIR: await makeDataFolder() }
    const { kith } = await serve(environment)
    await hasBase(place)
    const { base, from } = JSON.parse((await kithOf(environment, 'archive', 'base', '--json')).stdout)
    expect(await terminate(kith)).toBe(0)
    const list = JSON.parse((await kithOf(environment, 'archive', 'list', '--json')).stdout)
    expect(list, kith.output.stdout).toHaveLength(2)
    expect(list[1]).toMatchObject({ base, from, timeline: 1, until: expect.any(String) })
    const newDataDir = join(await makeFolder(), '.kith')
    const elsewhere = { ...environment, KITH_DATA_DIR: newDataDir }
    const range = `it has ${list[0].from} to ${list[1].until}`
    for (const at of [Date.parse(list[0].from) - 1, Date.parse(list[1].until) + 1]) {
      const refused = await kithOf(elsewhere, 'restore', '--at', new Date(at).toISOString())
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(range) })
    }
    expect(await exists(join(newDataDir, 'postgresql'))).toBe(false)
    const full = await kithOf(environment, 'restore', '--at', list[1].until)
    expect(full).toMatchObject({ code: 1, stderr: expect.stringContaining('has data') })
    await rm(join(environment.KITH_ARCHIVE!, 'wal', '00000001'), { recursive: true })
    const gap = await kithOf(elsewhere, 'restore', '--at', list[1].until)
    expect(gap).toMatchObject({ code: 1, stderr: expect.stringContaining('lacks a segment of the log') })
  })
})

describe('the start of a service with an archive', { timeout: 400_000 }, () => {
  const startOf = async (environment: Environment) => {
    const { ended, output } = launch({ ...environment, KITH_DATA_DIR: await makeDataFolder() })
    return { code: await ended, output: output.stdout + output.stderr }
  }

  it('refuses wrong credentials, a bucket and a folder that do not exist', async () => {
    const { environment } = await startBucket()
    const wrongKey = await startOf({ ...environment, AWS_ACCESS_KEY_ID: 'wrong' })
    expect(wrongKey).toMatchObject({ code: 1, output: expect.stringContaining('refuses the credentials') })
    const noBucket = await startOf({ ...environment, KITH_ARCHIVE: 's3://nowhere' })
    expect(noBucket).toMatchObject({ code: 1, output: expect.stringContaining('the bucket nowhere does not exist') })
    const noFolder = await startOf({ KITH_ARCHIVE: join(await makeFolder(), 'unmounted') })
    expect(noFolder).toMatchObject({ code: 1, output: expect.stringContaining('does not exist: make it, or mount') })
    const file = join(await makeFolder(), 'file')
    await writeFile(file, '')
    const noneEither = await startOf({ KITH_ARCHIVE: file })
    expect(noneEither).toMatchObject({ code: 1, output: expect.stringContaining('does not exist: make it, or mount') })
    const list = await kithOf({ KITH_ARCHIVE: file }, 'archive', 'list')
    expect(list).toMatchObject({ code: 1, stderr: expect.stringContaining('does not exist: make it, or mount') })
  })

  it('does not call an archive back that is away until the stop', async () => {
    const place = await makeFolderPlace()
    const { kith } = await serve({ ...place.environment, KITH_DATA_DIR: await makeDataFolder() })
    await hasBase(place)
    const folder = place.environment.KITH_ARCHIVE!
    await rename(folder, `${folder}-away`)
    expect(await terminate(kith)).toBe(0)
    await rename(`${folder}-away`, folder)
    expect(kith.output.stdout).toContain('the archive is not up to date')
    expect(kith.output.stdout).not.toContain('the archive is back')
  })

  it('refuses the archive of other data, and of another data folder', async () => {
    const place = await makeFolderPlace()
    const dataDir = await makeDataFolder()
    const { kith } = await serve({ ...place.environment, KITH_DATA_DIR: dataDir })
    await terminate(kith)
    const copied = await startOf(place.environment)
    expect(copied).toMatchObject({ code: 1, output: expect.stringContaining('of another copy of these data') })
    const owner = JSON.parse((await place.store.read('archive.json'))!.toString())
    await place.store.write('archive.json', Buffer.from(JSON.stringify({ ...owner, system_identifier: '1' })))
    const other = await startOf(place.environment)
    expect(other).toMatchObject({ code: 1, output: expect.stringContaining('is the archive of other data') })
  })
})

it('a copy that fails leaves none of its parts in the archive, where the log needs the room', async () => {
  const { store } = await makeFolderPlace()
  const database = await startEmbedded({ dataDir: await makeDataFolder(), purpose: 'command', log: () => {} })
  const written: string[] = []
  const full: Store = {
    ...store,
    write: async (name, bytes) => {
      if (name.endsWith('base.json')) throw new Error('no space left on device')
      written.push(name)
      await store.write(name, bytes)
    },
  }
  try {
    await writePosition(store, 1, { until: '2100-01-01T00:00:00.000Z', segment: 1 })
    const { url, dataDir: path } = database
    await expect(copyBase({ url, path, store: full, patienceMs: 1_000 })).rejects.toThrow('no space left')
    expect(written).toHaveLength(1)
    expect(await store.list('bases/')).toEqual([])
    // A stop ends a copy in the middle of a file. A rejection that nothing handles would end the process with 1.
    for (const ms of [20, 60, 100, 150, 200, 300]) {
      const signal = AbortSignal.timeout(ms)
      await expect(copyBase({ url, path, store: full, patienceMs: 1_000, signal })).rejects.toThrow()
    }
    expect(await store.list('bases/')).toEqual([])
  } finally {
    await database.stop()
  }
})

describe('hostile objects', { timeout: 60_000 }, () => {
  /** Stores a copy whose stream of tar has these entries, with a log of no segment. */
  async function storeCopy(store: Store, names: string[]) {
    const pack = tar.pack()
    for (const name of names) pack.entry({ name }, 'evil')
    pack.finalize()
    const chunks: Buffer[] = []
    for await (const chunk of pack.pipe(createZstdCompress())) chunks.push(chunk)
    const bytes = Buffer.concat(chunks)
    const base: Base = {
      id: '1-a',
      timeline: 1,
      first: 5,
      last: 5,
      stopped_at: '2026-01-01T00:00:00.000Z',
      backup_label: '',
      parts: [{ bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }],
    }
    await store.write(partName(base.id, 0), bytes)
    await writePosition(store, 1, { until: '2026-01-02T00:00:00.000Z', segment: 4 })
    await writeBase(store, base)
    return base
  }

  it('with names that kith does not write are left out of lists', async () => {
    const { store, environment } = await startBucket()
    const names = ['bases/a&<b/base.json', 'bases/../../out/base.json', 'bases/a b/base.json', 'bases/.x/base.json']
    const signed = placeOf('', environment)
    for (const name of names) await signed.store.write(encodeURIComponent(name), Buffer.from('{}')).catch(() => {})
    const base = await storeCopy(store, ['a'])
    expect(await listBases(store)).toEqual([base])
    expect(await readPosition(store, 1)).toBeDefined()
    const folder = await makeFolderPlace()
    await mkdir(join(folder.environment.KITH_ARCHIVE!, 'bases', 'a b'), { recursive: true })
    await writeFile(join(folder.environment.KITH_ARCHIVE!, 'bases', 'a b', 'base.json'), '{}')
    expect(await listBases(folder.store)).toEqual([])
  })

  it.each(['../evil', '/../evil', 'a/../../evil'])('cannot write the file %s outside of the data', async name => {
    const { store, environment } = await makeFolderPlace()
    await storeCopy(store, [name])
    const folder = await makeFolder()
    const restored = await kithOf(
      { ...environment, KITH_DATA_DIR: join(folder, '.kith') },
      'restore',
      '--from',
      environment.KITH_ARCHIVE!,
    )
    expect(restored).toMatchObject({ code: 1, stderr: expect.stringContaining('not a file of a data folder') })
    expect(await exists(join(folder, '.kith', 'postgresql'))).toBe(false)
    expect(await exists(join(folder, '.kith', 'evil'))).toBe(false)
  })

  it('that were changed are refused', async () => {
    const { store, environment } = await makeFolderPlace()
    const base = await storeCopy(store, ['a'])
    await store.write(partName(base.id, 0), Buffer.from('changed'))
    const dataDir = join(await makeFolder(), '.kith')
    const restored = await kithOf(
      { ...environment, KITH_DATA_DIR: dataDir },
      'restore',
      '--from',
      environment.KITH_ARCHIVE!,
    )
    expect(restored).toMatchObject({ code: 1, stderr: expect.stringContaining('is damaged') })
  })
})
