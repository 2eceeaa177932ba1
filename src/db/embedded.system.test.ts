import { once } from 'node:events'
import { mkdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import {
  exists,
  query,
  readNotes,
  serverPid,
  socketFolderOf,
  stop,
  until,
  useEmbeddedFixture,
  writeNotes,
  writtenRows,
} from '../../test/support/embedded-service.ts'
import { urlOfDatabase } from './embedded.ts'

const ground = useEmbeddedFixture()

describe('the embedded PostgreSQL', () => {
  beforeEach(ground.fill)

  it('is durable, listens only in a private socket folder, and keeps its data across restarts', async () => {
    const first = await ground.start('serve')
    const settings = `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as commits,
      current_setting('listen_addresses') as addresses, current_setting('server_encoding') as encoding,
      current_setting('data_checksums') as checksums, current_database() as database`
    expect(await query(first.url, settings)).toEqual([
      { fsync: 'on', commits: 'on', addresses: '', encoding: 'UTF8', checksums: 'on', database: 'kith' },
    ])
    expect((await stat(socketFolderOf(first.url))).mode & 0o777).toBe(0o700)
    expect((await stat(join(first.dataDir, 'password'))).mode & 0o777).toBe(0o600)
    await writeNotes(first.url)
    await stop(first)
    expect(await serverPid(first.dataDir)).toBeUndefined()
    expect(await exists(socketFolderOf(first.url))).toBe(false)
    const second = await ground.start('serve')
    expect(await readNotes(second.url)).toEqual(writtenRows)
    expect([socketFolderOf(first.url), socketFolderOf(second.url)]).toEqual(Array(2).fill(join(first.dataDir, 'run')))
  })

  it('rejects a connection with a wrong password', async () => {
    const { url } = await ground.start('serve')
    const other = new URL(url)
    other.password = 'guessed'
    await expect(query(other.href, 'select 1')).rejects.toThrow(/password authentication failed/)
  })

  it('builds the URL of another database of the same server', async () => {
    const { url } = await ground.start('serve')
    expect(await query(urlOfDatabase(url, 'postgres'), 'select current_database()')).toEqual([
      { current_database: 'postgres' },
    ])
  })

  it('keeps running on a Ctrl-C at the terminal, so that the service can drain first', async () => {
    const { child, dataDir: path } = await ground.start('serve')
    const exit = once(child, 'exit')
    process.kill(-child.pid!, 'SIGINT')
    await exit
    expect(await serverPid(path)).toBeDefined()
  })
})

describe('the service that owns a data folder', () => {
  beforeEach(ground.fill)

  it('excludes a second one, whose error names the owner', async () => {
    const owner = await ground.start('serve')
    await expect(ground.start('serve')).rejects.toThrow(`kith serve pid ${owner.child.pid}`)
    expect(await query(owner.url, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  it('takes it again after its connection was cut', async () => {
    const owner = await ground.start('serve')
    const holders = `select pid from pg_stat_activity where application_name = 'kith serve pid ${owner.child.pid}'`
    const [cut] = await query(owner.url, holders)
    await query(owner.url, `select pg_terminate_backend(${cut!.pid})`)
    await until(async () => (await query(owner.url, holders)).some(({ pid }) => pid !== cut!.pid))
    await until(() => owner.logged.some(line => line.endsWith('is back')))
    await expect(ground.start('serve')).rejects.toThrow(`kith serve pid ${owner.child.pid}`)
  })
})

describe('a command', () => {
  beforeEach(ground.fill)

  it('shares the server of a running service and leaves it running', async () => {
    const service = await ground.start('serve')
    await writeNotes(service.url)
    const command = await ground.start('command')
    expect(await readNotes(command.url)).toEqual(writtenRows)
    await stop(command)
    expect(await query(service.url, 'select text from notes')).toEqual(writtenRows)
  })

  it('starts a server if none runs, and stops it at the end', async () => {
    const command = await ground.start('command')
    await writeNotes(command.url)
    await stop(command)
    expect(await serverPid(command.dataDir)).toBeUndefined()
    expect(await exists(socketFolderOf(command.url))).toBe(false)
  })

  it('leaves the server that it started to a service that joined meanwhile', async () => {
    const command = await ground.start('command')
    const service = await ground.start('serve')
    await writeNotes(service.url)
    await stop(command)
    expect(await query(service.url, 'select text from notes')).toEqual(writtenRows)
  })

  it('keeps the server running when the service stops, and then stops it', async () => {
    const service = await ground.start('serve')
    const command = await ground.start('command')
    await writeNotes(service.url)
    await stop(service)
    expect(await query(command.url, 'select text from notes')).toEqual(writtenRows)
    await stop(command)
    expect(await serverPid(command.dataDir)).toBeUndefined()
  })
})

describe('a data folder whose path is too long for a socket', () => {
  it('has its socket in a temporary folder, which is below /tmp if TMPDIR does not exist', async () => {
    ground.dataDir = join(ground.base, 'long '.repeat(20))
    vi.stubEnv('TMPDIR', '/nowhere')
    try {
      const service = await ground.start('serve')
      expect(socketFolderOf(service.url)).toMatch(/^\/tmp\/kith-/)
      expect(await query(service.url, 'select 1 as one')).toEqual([{ one: 1 }])
    } finally {
      vi.unstubAllEnvs()
    }
  })
})

describe('unusable data: a start fails with one sentence and changes nothing', () => {
  it('if the link points to data that no longer exist', async () => {
    await mkdir(ground.dataDir)
    await symlink('/nowhere', join(ground.dataDir, 'postgresql'))
    await expect(ground.start('serve')).rejects.toThrow(/^EmbeddedError: .*points to data that no longer exist/)
  })

  it('if the data belong to another major version', async () => {
    await mkdir(join(ground.dataDir, 'postgresql', 'data'), { recursive: true })
    await writeFile(join(ground.dataDir, 'postgresql', 'data', 'PG_VERSION'), '14\n')
    await expect(ground.start('serve')).rejects.toThrow(
      /belong to PostgreSQL 14, but this version of kith runs PostgreSQL 18/,
    )
  })

  it('if the file with the password is not that of the data, and leaves no server behind', async () => {
    await ground.fill()
    const service = await ground.start('serve')
    await stop(service)
    await writeFile(join(service.dataDir, 'password'), 'another\n')
    await expect(ground.start('command')).rejects.toThrow(
      /^EmbeddedError: .* refuses the password in .*\/password\. Put the file back/,
    )
    expect(await serverPid(service.dataDir)).toBeUndefined()
  })

  it('if the data folder is a file', async () => {
    await writeFile(ground.dataDir, '')
    await expect(ground.start('serve')).rejects.toThrow(/^EmbeddedError: The data folder .* cannot be used/)
  })
})
