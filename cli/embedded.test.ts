import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'

const program = fileURLToPath(new URL('./main.ts', import.meta.url))

let base: string
const children: ChildProcess[] = []

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'kith-cli-test-'))
  // As root, the embedded PostgreSQL runs as another user, which must be able to enter the folder.
  await chmod(base, 0o755)
})

afterAll(async () => {
  for (const child of children.filter(each => each.exitCode === null && each.signalCode === null)) {
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  await rm(base, { recursive: true, maxRetries: 10 })
})

function start(...args: string[]) {
  const environment = { KITH_DATA_DIR: join(base, '.kith'), PORT: '0' }
  const child = spawn(process.execPath, [program, ...args], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  return child
}

async function kith(...args: string[]) {
  const child = start(...args)
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, stdout, stderr }
}

/** Waits until the service prints its address. */
async function addressOf(service: ReturnType<typeof start>): Promise<string> {
  for await (const line of createInterface({ input: service.stdout })) {
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
  service.kill('SIGTERM')
  await once(service, 'exit')
  expect(service.exitCode).toBe(0)
  expect((await kith('org', 'list')).stdout).toMatch(/^default\t.*\nacme\t/)
})
