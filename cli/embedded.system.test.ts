import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type RunningCommand, startCommand } from '../test/support/command.ts'

let base: string
const commands: RunningCommand[] = []

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'kith-cli-test-'))
  // When kith runs as root, the embedded PostgreSQL runs as another user, which must be able to enter the folder.
  await chmod(base, 0o755)
})

afterAll(async () => {
  for (const { child, ended } of commands) {
    child.kill('SIGTERM')
    await ended
  }
  await rm(base, { recursive: true, maxRetries: 10 })
})

function start(...args: string[]): RunningCommand {
  const command = startCommand(args, { KITH_DATA_DIR: join(base, '.kith'), PORT: '0' })
  commands.push(command)
  return command
}

const kith = (...args: string[]) => start(...args).ended

/** Waits until the service prints its address. */
async function addressOf({ child }: RunningCommand): Promise<string> {
  for await (const line of createInterface({ input: child.stdout })) {
    const address = /kith is ready at ([^\s"]+)/.exec(line)?.[1]
    if (address) return address
  }
  throw new Error('The service ended before it was ready.')
}

it('commands use the embedded database without a service, with a running one, and concurrently', async () => {
  const quiet = { code: 0, stderr: '' }
  const [created, listed] = await Promise.all([kith('org', 'create', 'acme'), kith('org', 'list')])
  expect(created).toEqual({ code: 0, stdout: '', stderr: 'Created organization acme.\n' })
  expect(listed).toMatchObject(quiet)
  const before = await kith('token', '--org', 'acme', '--scope', 'people:read')
  const service = start('serve')
  const address = await addressOf(service)
  const concurrent = await Promise.all([1, 2].map(() => kith('token', '--org', 'acme', '--scope', 'people:read')))
  for (const answer of [before, ...concurrent]) {
    expect(answer).toMatchObject(quiet)
    const headers = { Authorization: `Bearer ${answer.stdout.trim()}` }
    expect((await fetch(`${address}/v1/people/nobody`, { headers })).status).toBe(404)
  }
  // Commands on this machine find the service by its data folder, whatever its port.
  const seed = startCommand(['seed', '--people', '3'], { KITH_DATA_DIR: join(base, '.kith') })
  commands.push(seed)
  expect(await seed.ended).toMatchObject({ code: 0, stderr: expect.stringMatching(/^people: \d created/m) })
  service.child.kill('SIGTERM')
  expect((await service.ended).code).toBe(0)
  expect((await kith('org', 'list')).stdout).toMatch(/"key":"default".*\n.*"key":"acme"/)
})
