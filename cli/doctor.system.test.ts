import { appendFile, chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Finding } from '../src/operations/doctor/finding.ts'
import { runInProcess, startCommand } from '../test/support/command.ts'
import { createTestDatabase } from '../test/support/database.ts'
import { endProcesses, launch, makeFolder, terminate } from '../test/support/process.ts'

const words = ['doctor', '--json']

async function doctor(environment: Record<string, string>) {
  const run = 'NODE_OPTIONS' in environment ? startCommand(words, environment).ended : runInProcess(words, environment)
  const { code, stdout, stderr } = await run
  expect(stderr).toBe('')
  return { code, findings: JSON.parse(stdout).findings as Finding[] }
}

const findingsOf = ({ findings }: { findings: Finding[] }, check: string) =>
  findings.filter(finding => finding.check === check)

/** The environment with a script that Node loads first, to simulate a faulty machine. */
const preload = (script: string) => ({ NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(script)}` })

afterAll(endProcesses)

it.each([
  [45_000, 'wrong', /4[0-9]\.\d s apart/],
  [5_000, 'warning', /[5-9]\.\d s apart/],
])('kith doctor compares the clocks of machine and database: %d ms', async (ms, verdict, message) => {
  const database = await createTestDatabase()
  const late = preload(`const now = Date.now; Date.now = () => now() - ${ms}`)
  const report = await doctor({ DATABASE_URL: database.url, ...late })
  await database.drop()
  const advice = expect.any(String)
  expect(findingsOf(report, 'clock')).toMatchObject([{ verdict, message: expect.stringMatching(message), advice }])
  expect(report.code).toBe(verdict === 'wrong' ? 1 : 0)
})

describe('kith doctor, on the embedded server', () => {
  let dataDir: string
  const serverChecks = ['configuration', 'permissions', 'disk', 'database', 'durability', 'connections', 'archive']
  beforeAll(async () => {
    dataDir = join(await makeFolder(), 'data')
  })

  it('finds no data before the first start, and creates none', async () => {
    const report = await doctor({ KITH_DATA_DIR: dataDir })
    expect([report.code, findingsOf(report, 'database')[0]?.message]).toEqual([0, 'there is no data yet'])
    expect((await doctor({ KITH_DATA_DIR: dataDir })).code).toBe(0)
  })

  it('finds no fault while the service runs and while it is stopped', async () => {
    const service = launch({ KITH_DATA_DIR: dataDir })
    await service.ready
    const running = await doctor({ KITH_DATA_DIR: dataDir })
    expect(running.findings.filter(({ verdict }) => verdict === 'wrong')).toEqual([])
    expect(running.findings.map(({ check }) => check)).toEqual([
      ...serverChecks,
      'migrations',
      'clock',
      'keys',
      'master key',
      'backup',
      'transactions',
      'indexes',
      'followers',
      'webhooks',
    ])
    expect(await terminate(service)).toBe(0)
    const stopped = await doctor({ KITH_DATA_DIR: dataDir })
    expect([stopped.code, stopped.findings.length]).toEqual([0, running.findings.length])
  })

  it('prints one line per finding, with advice below a fault', async () => {
    await chmod(join(dataDir, 'postgresql', 'password'), 0o644)
    const { code, stdout } = await runInProcess(['doctor'], { KITH_DATA_DIR: dataDir })
    expect(code).toBe(1)
    expect(stdout).toMatch(/^ok {7}configuration /)
    expect(stdout).toMatch(/^wrong {4}permissions {3}.*\/password may be read by other users\n {23}→ chmod 600 /m)
    await chmod(join(dataDir, 'postgresql', 'password'), 0o600)
  })

  it('finds a full disk', async () => {
    const full = preload(`import files from 'node:fs/promises'
      import { syncBuiltinESMExports } from 'node:module'
      files.statfs = async () => ({ bavail: 1000, bsize: 4096 })
      syncBuiltinESMExports()`)
    const report = await doctor({ KITH_DATA_DIR: dataDir, ...full })
    expect([report.code, findingsOf(report, 'disk')[0]?.verdict]).toEqual([1, 'wrong'])
  })

  it('finds settings that can lose data', async () => {
    const settings = 'fsync = off\nfull_page_writes = off\n'
    await appendFile(join(dataDir, 'postgresql', 'data', 'postgresql.auto.conf'), settings)
    const report = await doctor({ KITH_DATA_DIR: dataDir })
    expect(report.code).toBe(1)
    expect(findingsOf(report, 'durability').map(({ message }) => message.split(':')[0])).toEqual([
      'fsync is off',
      'full_page_writes is off',
    ])
  })
})
