import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, readdir, realpath, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  exists,
  isRunning,
  kill,
  killServer,
  readNotes,
  serverPid,
  socketFolderOf,
  stop,
  until,
  useEmbeddedFixture,
  writeNotes,
  writtenRows,
} from '../../../test/support/embedded-service.ts'
import { unprivilegedUser } from './processes.ts'

const isRoot = process.getuid?.() === 0
const ground = useEmbeddedFixture()

describe('written data after kill -9', () => {
  beforeEach(ground.fill)

  it('of the service survive: the next service adopts the running server, and can stop it', async () => {
    const killed = await ground.start('serve')
    await writeNotes(killed.url)
    const pid = await serverPid(killed.dataDir)
    await kill(killed.child)
    const next = await ground.start('serve')
    expect(await serverPid(next.dataDir)).toBe(pid)
    expect(await readNotes(next.url)).toEqual(writtenRows)
    await stop(next)
    expect(await serverPid(next.dataDir)).toBeUndefined()
  })

  it('of the service leave a server, which the next command stops when it ends', async () => {
    const service = await ground.start('serve')
    await writeNotes(service.url)
    await kill(service.child)
    expect(await serverPid(service.dataDir)).toBeDefined()
    const command = await ground.start('command')
    expect(await readNotes(command.url)).toEqual(writtenRows)
    await stop(command)
    expect(await serverPid(service.dataDir)).toBeUndefined()
  })

  it('of the server survive: the service restarts it under the same URL and still owns it', async () => {
    const { child, url, dataDir: path, logged } = await ground.start('serve')
    await writeNotes(url)
    const pid = await killServer(path)
    expect(await readNotes(url)).toEqual(writtenRows)
    expect(await serverPid(path)).not.toBe(pid)
    expect(isRunning(child)).toBe(true)
    await until(() => logged.some(line => line.endsWith('is back')))
    await expect(ground.start('serve')).rejects.toThrow(`kith serve pid ${child.pid}`)
  })

  it('of an adopted server survive', async () => {
    await kill((await ground.start('serve')).child)
    const service = await ground.start('serve')
    await writeNotes(service.url)
    await killServer(service.dataDir)
    expect(await readNotes(service.url)).toEqual(writtenRows)
  })

  it('of service and server survive', async () => {
    const { child, url, dataDir: path } = await ground.start('serve')
    await writeNotes(url)
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    process.kill((await serverPid(path))!, 'SIGKILL')
    await exit
    expect(await readNotes((await ground.start('serve')).url)).toEqual(writtenRows)
  })

  it('of the server do not keep the service from stopping', async () => {
    const service = await ground.start('serve')
    await killServer(service.dataDir)
    await stop(service)
    expect(await serverPid(service.dataDir)).toBeUndefined()
    expect(await exists(socketFolderOf(service.url))).toBe(false)
  })

  it('are served again although the stale lock file has the pid of another program', async () => {
    const service = await ground.start('serve')
    await writeNotes(service.url)
    await stop(service)
    const other = spawn('sleep', ['60'], { ...(await unprivilegedUser()) })
    ground.children.push(other)
    const path = service.dataDir
    await writeFile(
      join(path, 'data', 'postmaster.pid'),
      `${other.pid}\n${path}/data\n1\n5432\n/nowhere\n\n1 1\nready\n`,
    )
    expect(await readNotes((await ground.start('serve')).url)).toEqual(writtenRows)
    expect(isRunning(other)).toBe(true)
  })
})

describe('the first start', () => {
  it('starts over after one that was killed half way, and removes its leftovers', async () => {
    const half = ground.launch('serve')
    const leftovers = async () => (await readdir(ground.dataDir).catch(() => [])).filter(name => name.includes('.new-'))
    await until(async () => {
      const [work] = await leftovers()
      return work !== undefined && (await exists(join(ground.dataDir, work, 'data', 'base')))
    })
    await kill(half)
    expect(await exists(join(ground.dataDir, 'postgresql'))).toBe(false)
    const service = await ground.start('serve')
    await writeNotes(service.url)
    expect(await readNotes(service.url)).toEqual(writtenRows)
    expect(await leftovers()).toEqual([])
  })

  it('initialises once when two processes start together', async () => {
    const [first, second] = await Promise.all([ground.start('command'), ground.start('command')])
    expect(second.url).toBe(first.url)
    expect((await readdir(ground.dataDir)).filter(name => name.includes('.new-'))).toEqual([])
    await Promise.all([stop(first), stop(second)])
    expect(await serverPid(first.dataDir)).toBeUndefined()
  })

  it('has one owner when two services start together', async () => {
    const outcomes = await Promise.allSettled([ground.start('serve'), ground.start('serve')])
    const refused = outcomes.filter(outcome => outcome.status === 'rejected')
    expect(refused.map(({ reason }) => reason.message)).toEqual([expect.stringMatching(/in use by another service/)])
  })

  it.runIf(isRoot)(
    'by root below a closed folder keeps data and programs where the server’s user can reach them',
    async () => {
      await chmod(ground.base, 0o700)
      const service = await ground.start('serve')
      expect(dirname(service.dataDir)).toBe('/var/lib/kith')
      expect(service.logged.join()).toContain(service.dataDir)
      await writeNotes(service.url)
      await stop(service)
      expect(await readNotes((await ground.start('serve')).url)).toEqual(writtenRows)
    },
  )

  it.runIf(isRoot)('by root below a closed folder starts over after one that was killed half way', async () => {
    await chmod(ground.base, 0o700)
    const half = ground.launch('serve')
    const leftover = async () => (await readdir(ground.dataDir).catch(() => [])).find(name => name.includes('.new-'))
    await until(async () => exists(join(ground.dataDir, (await leftover()) ?? 'none', 'data', 'base')))
    const halfMade = await realpath(join(ground.dataDir, (await leftover())!))
    await kill(half)
    await ground.start('serve')
    expect(await exists(halfMade)).toBe(false)
    expect(await leftover()).toBeUndefined()
  })
})
