import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Change, createClient } from '../client/index.ts'
import { startBalancer } from '../test/support/balancer.ts'
import { numbersTo } from '../test/support/changes.ts'
import { startCommand } from '../test/support/command.ts'
import { createTestDatabase } from '../test/support/database.ts'
import { endProcesses, launch, terminate, tokenFrom } from '../test/support/process.ts'
import { type Organization, useService } from '../test/support/service.ts'

const program = fileURLToPath(new URL('./main.ts', import.meta.url))

const service = useService()
let organization: Organization
let environment: Record<string, string>
let folder: string
const started: ReturnType<typeof startCommand>[] = []
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kith-follow-'))
})
afterAll(() => rm(folder, { recursive: true }))
beforeEach(async () => {
  organization = await service.organization()
  environment = { KITH_URL: service.address, KITH_TOKEN: organization.token }
  await rm(file('state.json'), { force: true })
})
afterEach(async () => {
  for (const { child, ended } of started.splice(0)) {
    child.kill('SIGKILL')
    await ended
  }
})

const file = (name: string) => join(folder, name)
const stateOf = async () => JSON.parse(await readFile(file('state.json'), 'utf8'))
const numbers = (changes: Change[]) => changes.map(({ sequence }) => sequence)
const createPeople = async (...names: string[]) => {
  for (const external_id of names) await organization.client.people.create({ external_id })
}

/** Starts `kith follow`. `changes` returns what it has printed so far. */
function follow(args: string[] = [], env = environment) {
  const command = startCommand(['follow', ...args], env, folder)
  started.push(command)
  let text = ''
  command.child.stdout.on('data', part => {
    text += part
  })
  const changes = (): Change[] =>
    text
      .split('\n')
      .slice(0, -1)
      .map(line => JSON.parse(line))
  /** Waits until this many changes are printed. */
  const printed = async (count: number) => {
    await expect.poll(() => changes().length, { timeout: 30_000 }).toBe(count)
    return changes()
  }
  const stop = (signal: NodeJS.Signals = 'SIGTERM') => {
    command.child.kill(signal)
    return command.ended
  }
  return { ...command, changes, printed, stop }
}

describe('kith follow', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    'prints a line per change as it happens, and ends with 0 on %s',
    async signal => {
      await createPeople('ada')
      const following = follow()
      await following.printed(1)
      await createPeople('bob')
      const page = await organization.client.changes.list().page()
      expect(await following.printed(2)).toEqual(page.items)
      expect(await following.stop(signal)).toMatchObject({ code: 0, stderr: '' })
    },
  )

  it('warns of a token that sees no change', async () => {
    const following = follow([], {
      ...environment,
      KITH_TOKEN: await service.tokenFor(organization.key, 'changes:read'),
    })
    let stderr = ''
    following.child.stderr.on('data', part => {
      stderr += part
    })
    await expect.poll(() => stderr, { timeout: 30_000 }).toMatch(/^Warning: \/subject The token has none of the scopes/)
    expect((await following.stop()).code).toBe(0)
  })

  it('prints only the changes that the options select', async () => {
    await organization.client.schema.stacks.create({ key: 'orders', kind: 'item' })
    await createPeople('ada', 'bob')
    await organization.client.stack('orders').create({ external_id: 'o-1' })
    await organization.client.people.delete('ada')
    await organization.client.stack('orders').delete('o-1')
    const options = ['--subject', 'person', '--subject', 'record', '--operation', 'create', '--after', '2']
    const following = follow(options)
    expect(numbers(await following.printed(2))).toEqual([3, 4])
    await following.stop()
    const ofStack = follow(['--stack', 'orders'])
    expect(numbers(await ofStack.printed(2))).toEqual([4, 6])
    await ofStack.stop()
  })

  it('creates its own token on the machine of the service', async () => {
    const { port } = new URL(service.address)
    const following = follow(['--org', organization.key], { DATABASE_URL: service.databaseUrl, PORT: port })
    await createPeople('ada')
    expect(await following.printed(1)).toMatchObject([{ external_id: 'ada' }])
    expect(await following.stop()).toMatchObject({ code: 0 })
  })
})

describe('kith follow --state', () => {
  it('continues after the last line that it has printed, and ignores --after', async () => {
    await createPeople('ada', 'bob')
    const first = follow(['--after', '1', '--state', 'state.json'])
    expect(numbers(await first.printed(1))).toEqual([2])
    expect(await first.stop()).toMatchObject({ code: 0 })
    const { log_id } = await organization.client.changes.list().page()
    expect(await stateOf()).toEqual({ log_id, after: 2 })
    await createPeople('eve')
    const second = follow(['--after', '1', '--state', 'state.json'])
    expect(numbers(await second.printed(1))).toEqual([3])
    await second.stop()
    expect(await stateOf()).toEqual({ log_id, after: 3 })
    expect(await readdir(folder)).toEqual(['state.json'])
  })

  it('saves the position while it runs, never ahead of the lines, and repeats only unsaved ones after SIGKILL', async () => {
    const seen: Change[] = []
    for (let round = 0; round < 3; round += 1) {
      const following = follow(['--state', 'state.json'])
      await createPeople(...Array.from({ length: 20 }, (_, n) => `p${round}-${n}`))
      await expect.poll(() => following.changes().at(-1)?.sequence).toBe((round + 1) * 20)
      if (round > 0) await expect.poll(stateOf).toMatchObject({ after: (round + 1) * 20 })
      await following.stop('SIGKILL')
      const { after } = await stateOf().catch(() => ({ after: 0 }))
      seen.push(...following.changes())
      expect(after).toBeLessThanOrEqual(seen.at(-1)!.sequence)
    }
    expect([...new Set(numbers(seen))]).toEqual(numbersTo(60))
  })

  it('reports a file that cannot be written, and ends with 1', async () => {
    const following = follow(['--state', 'missing/state.json'])
    await createPeople('ada')
    const { code, stderr } = await following.ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/ENOENT.*missing/)
    expect(stderr).not.toMatch(/^ {4}at /m)
  })

  it('ends with 0 on SIGTERM while the reader of the pipe is stuck', async () => {
    const people = Array.from({ length: 3_000 }, (_, n) => ({ external_id: `p${n}`, first_name: 'x'.repeat(200) }))
    for await (const answer of organization.client.people.import(people)) expect(answer).not.toHaveProperty('error')
    const child = spawn(process.execPath, [program, 'follow', '--state', 'state.json'], {
      cwd: folder,
      env: environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    // No process reads the output, so the pipe takes only its beginning.
    await expect.poll(() => stateOf().catch(() => undefined)).toBeDefined()
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
    expect((await stateOf()).after).toBeLessThan(3_000)
  })

  it('ends without a message when the reader closes the pipe, with the position of the last line', async () => {
    const following = follow(['--state', 'state.json'])
    await createPeople('ada')
    await following.printed(1)
    following.child.stdout.destroy()
    await createPeople('bob', 'eve')
    expect(await following.ended).toMatchObject({ code: 1, stderr: '' })
    expect((await stateOf()).after).toBeGreaterThanOrEqual(1)
    expect(await readdir(folder)).toEqual(['state.json'])
  })
})

describe('kith follow beside a service that restarts', { timeout: 120_000 }, () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  beforeEach(async () => {
    database = await createTestDatabase()
  })
  afterEach(async () => {
    await endProcesses()
    await database.drop()
  })

  it('goes on without a gap and without a repetition', async () => {
    const balancer = await startBalancer('connection')
    const run = async () => {
      const kith = launch({ DATABASE_URL: database.url })
      const address = await kith.ready
      balancer.services.add(address)
      await expect.poll(() => [...balancer.ready]).toContain(address)
      return { kith, address }
    }
    let { kith, address } = await run()
    const token = await tokenFrom({ DATABASE_URL: database.url })
    const client = createClient({ url: balancer.address, token })
    const following = follow(['--state', 'state.json'], { KITH_URL: balancer.address, KITH_TOKEN: token })
    for (const round of [0, 1]) {
      await client.people.create({})
      await following.printed(round * 2 + 1)
      balancer.services.delete(address)
      if (round === 0) expect(await terminate(kith)).toBe(0)
      else kith.child.kill('SIGKILL')
      await kith.ended
      ;({ kith, address } = await run())
      await client.people.create({})
      await following.printed(round * 2 + 2)
    }
    const { code, stderr } = await following.stop()
    expect(code).toBe(0)
    expect(stderr).toMatch(/^The service ended the stream\. Connecting again in 0\.\d s\.\n/)
    expect(numbers(following.changes())).toEqual([1, 2, 3, 4])
    await balancer.stop()
  })
})
