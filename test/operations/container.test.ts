import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join, matchesGlob } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { startFlags } from '../../scripts/start-flags.ts'
import { createTestDatabase } from '../support/database.ts'
import { checkout, endProcesses, makeFolder } from '../support/process.ts'

const read = (path: string) => readFileSync(join(checkout, path), 'utf8')
const dockerfile = read('Dockerfile')
const { devDependencies } = JSON.parse(read('package.json')) as { devDependencies: Record<string, string> }

afterEach(endProcesses)

/** The COPY lines of the Dockerfile's last stage: paths in the checkout, and their targets below /opt/kith. */
const copiedPaths = dockerfile
  .slice(dockerfile.lastIndexOf('\nFROM '))
  .split('\n')
  .filter(line => line.startsWith('COPY') && !line.includes('--from'))
  .flatMap(line => {
    const words = line.split(' ').filter(word => word !== 'COPY' && !word.startsWith('--'))
    const target = words.at(-1)!
    return words
      .slice(0, -1)
      .map(source => ({ source, target: target.endsWith('/') ? join(target, source.split('/').at(-1)!) : target }))
  })

const ignoreLines = read('.dockerignore')
  .split('\n')
  .filter(line => line !== '' && !line.startsWith('#'))

/**
 * Whether Docker sends a path to the build. As in Docker, the last line that matches the path or a parent folder
 * decides.
 */
function isInBuildContext(path: string): boolean {
  const prefixes = path.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'))
  let isIncluded = true
  for (const line of ignoreLines) {
    const pattern = line.replace(/^!/, '')
    if (prefixes.some(each => matchesGlob(each, pattern))) isIncluded = line.startsWith('!')
  }
  return isIncluded
}

/** Creates a folder with only the files of the image, and a link to the checkout's packages. Returns its path. */
async function makeImage(): Promise<string> {
  const home = join(await makeFolder(), 'kith')
  await mkdir(home)
  for (const { source, target } of copiedPaths) {
    expect({ source, exists: existsSync(join(checkout, source)), sent: isInBuildContext(source) }).toEqual({
      source,
      exists: true,
      sent: true,
    })
    const filter = (path: string) => isInBuildContext(path.slice(checkout.length)) || path === join(checkout, source)
    await cp(join(checkout, source), join(home, target), { recursive: true, filter })
  }
  await symlink(join(checkout, 'node_modules'), join(home, 'node_modules'))
  return home
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

describe('the container image', () => {
  it('has the Node.js version that the tests run on', () => {
    expect(/^ARG NODE=(\S+)$/m.exec(dockerfile)?.[1]).toBe(devDependencies.node)
    const bases = dockerfile.match(/^FROM \S+/gm)!
    expect(bases.map(base => base.replace(/\$\{NODE\}/, 'N'))).toEqual(Array(3).fill('FROM node:N-bookworm-slim'))
  })

  it('runs as another user than root, with a health check and SIGTERM as the stop signal', () => {
    const last = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
    expect(last).toMatch(/^USER node$/m)
    expect(last).toMatch(/^STOPSIGNAL SIGTERM$/m)
    expect(last).toMatch(/^HEALTHCHECK .*CMD \["node", "\/opt\/kith\/scripts\/healthcheck\.ts"\]$/m)
  })

  it('has every file it needs to serve, reads the password from a file, reports its health, and drains', async () => {
    const home = await makeImage()
    const database = await createTestDatabase()
    const environment = { ...(await settingsFor(database.url, home)), HOST: '0.0.0.0', KITH_BEHIND_PROXY: '1' }
    const child = spawn(join(home, 'ops', 'kith'), ['serve'], { env: environment, cwd: '/' })
    const ended = once(child, 'exit')
    try {
      await Promise.race([waitUntilReady(child), ended])
      expect(await runHealthCheck(home, environment)).toBe(0)
      // A command in the container finds the same database.
      const listed = await promisify(execFile)(join(home, 'ops', 'kith'), ['org', 'list'], { env: environment })
      expect(listed.stdout).toContain('default')
      child.kill('SIGTERM')
      expect(await ended).toEqual([0, null])
      expect(await runHealthCheck(home, environment)).toBe(1)
    } finally {
      child.kill('SIGKILL')
      await database.drop()
    }
  })

  it('starts kith with the flags of npm start', () => {
    expect(/exec node (.*?) "\$home/.exec(read('ops/kith'))?.[1]?.split(' ')).toEqual(startFlags)
  })
})

/** The settings of a container. The database password is in a file. */
async function settingsFor(databaseUrl: string, home: string) {
  const url = new URL(databaseUrl)
  const DATABASE_PASSWORD_FILE = join(home, '..', 'password')
  await writeFile(DATABASE_PASSWORD_FILE, `${decodeURIComponent(url.password)}\n`)
  url.password = ''
  const PATH = `${join(checkout, 'node_modules', '.bin')}:/usr/bin:/bin`
  return { PATH, DATABASE_URL: url.href, DATABASE_PASSWORD_FILE, PORT: String(await freePort()) }
}

/** Resolves once the process logs that it is ready. */
function waitUntilReady({ stdout }: ChildProcessWithoutNullStreams): Promise<void> {
  let output = ''
  return new Promise(resolve =>
    stdout.on('data', part => {
      output += part
      if (output.includes('kith is ready')) resolve()
    }),
  )
}

/** Runs the container's health check. Returns its exit code. */
async function runHealthCheck(home: string, env: Record<string, string>): Promise<number> {
  const check = spawn(process.execPath, [join(home, 'scripts', 'healthcheck.ts')], { env, stdio: 'ignore' })
  const [code] = await once(check, 'exit')
  return code
}

type ComposeService = {
  image: string
  environment: Record<string, string>
  secrets: string[]
  restart: string
  healthcheck?: { test: string[] }
  volumes?: string[]
  ports?: string[]
  read_only?: boolean
  cap_drop?: string[]
  stop_grace_period: string
}

describe('the compose file', () => {
  const text = read('ops/compose.yaml')
  const compose = parse(text) as {
    services: { postgres: ComposeService; kith: ComposeService }
    secrets: Record<string, { file: string }>
    volumes: Record<string, unknown>
  }
  const { postgres, kith } = compose.services

  it('runs PostgreSQL 18 on a volume, with a health check', () => {
    expect(postgres.image).toMatch(/^postgres:18\b/)
    expect(postgres.volumes).toEqual(['postgres:/var/lib/postgresql'])
    expect(compose.volumes).toHaveProperty('postgres')
    expect(postgres.healthcheck?.test).toContain('pg_isready')
  })

  it('restarts both services, and runs kith without capabilities on a read-only root', () => {
    expect([postgres.restart, kith.restart]).toEqual(['unless-stopped', 'unless-stopped'])
    expect(kith).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
    expect(kith.ports!.every(port => port.startsWith('127.0.0.1:'))).toBe(true)
    expect(Number.parseInt(kith.stop_grace_period, 10)).toBeGreaterThan(12)
  })

  it('contains no password: both services read one file, which git ignores', async () => {
    for (const { secrets } of [postgres, kith]) expect(secrets).toEqual(['database_password'])
    expect(new URL(kith.environment.DATABASE_URL!).password).toBe('')
    expect(postgres.environment).not.toHaveProperty('POSTGRES_PASSWORD')
    const { file } = compose.secrets.database_password!
    const ignored = promisify(execFile)('git', ['check-ignore', join('ops', file)], { cwd: checkout })
    await expect(ignored).resolves.toMatchObject({ stdout: expect.stringContaining('database_password') })
  })
})

describe('the systemd unit', () => {
  const unit = read('ops/kith.service')
  const values = new Map(
    unit.split('\n').flatMap(line => (/^\w+=/.test(line) ? [line.split(/=(.*)/s, 2) as [string, string]] : [])),
  )

  it('leaves time to drain, restarts after a failure, and allows enough open files', () => {
    expect(values.get('KillSignal')).toBe('SIGTERM')
    expect(Number(values.get('TimeoutStopSec'))).toBeGreaterThan(12)
    expect(values.get('Restart')).toBe('on-failure')
    expect(Number(values.get('LimitNOFILE'))).toBeGreaterThanOrEqual(65_536)
  })

  it('runs as its own user, who can write only to the folders of kith', () => {
    expect(values.get('User')).toBe('kith')
    expect(values.get('ProtectSystem')).toBe('strict')
    expect(values.get('StateDirectory')).toBe('kith')
    expect(values.get('NoNewPrivileges')).toBe('yes')
    expect(values.get('CapabilityBoundingSet')).toBe('')
  })

  it.skipIf(!existsSync('/usr/bin/systemd-analyze'))('is valid (needs systemd-analyze)', async () => {
    const folder = await makeFolder()
    const path = join(folder, 'kith.service')
    // A unit file cannot name a path with a space everywhere, and the checkout may have one.
    const installed = join(folder, 'installed')
    await symlink(checkout, installed)
    await writeFile(path, unit.replaceAll('/opt/kith', installed))
    const { stderr } = await promisify(execFile)('/usr/bin/systemd-analyze', ['verify', path])
    expect(stderr).toBe('')
  })
})
