// Runs a command with a temporary service: an embedded PostgreSQL in a temporary folder, a free port and a token.
//   node scripts/with-service.ts node examples/people.ts
// The command gets KITH_URL and KITH_TOKEN in its environment, and KITH_DATA_DIR for the command line of kith. Its exit code is passed on.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { scopes } from '../src/route/scopes.ts'

const [command, ...parameters] = process.argv.slice(2)
if (!command) throw new Error('usage: node scripts/with-service.ts <command> [parameters]')

const cli = fileURLToPath(new URL('../cli/main.ts', import.meta.url))
const dataDir = mkdtempSync(join(tmpdir(), 'kith-service-'))
// As root, PostgreSQL runs as another user, who must be able to enter. Else its data would go to another folder and stay there.
chmodSync(dataDir, 0o711)
const environment = { ...process.env, KITH_DATA_DIR: dataDir, PORT: '0', DATABASE_URL: '', LOG_LEVEL: 'warn' }
const service = spawn(process.execPath, [cli, 'serve'], { env: environment, stdio: ['ignore', 'pipe', 'inherit'] })

try {
  const address = await addressOf(service)
  const token = execFileSync(process.execPath, [cli, 'token', '--org', 'default', '--scope', scopes.join(' ')], {
    env: environment,
  })
  const child = spawn(command, parameters, {
    stdio: 'inherit',
    env: { ...process.env, KITH_URL: address, KITH_TOKEN: String(token).trim(), KITH_DATA_DIR: dataDir },
  })
  const [code] = await once(child, 'exit')
  process.exitCode = code ?? 1
} finally {
  const running = service.exitCode === null && service.signalCode === null
  if (running && service.kill('SIGTERM')) await once(service, 'exit')
  rmSync(dataDir, { recursive: true, force: true })
}

/** Waits for the log line with the address of the service. */
async function addressOf(process: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: process.stdout! })) {
    const match = /kith is ready at ([^\s"]+)/.exec(line)
    if (match) {
      process.stdout!.resume()
      return match[1]!
    }
  }
  throw new Error('The service ended before it was ready.')
}
