import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join, matchesGlob } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { startFlags } from '../../scripts/start-flags.ts'
import { checkout, endProcesses, makeFolder } from '../support/process.ts'

const read = (path: string) => readFileSync(join(checkout, path), 'utf8')
const dockerfile = read('Dockerfile')
const { devDependencies } = JSON.parse(read('package.json')) as { devDependencies: Record<string, string> }

afterEach(endProcesses)

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
    // A wildcard of Docker matches a leading dot too.
    if (pattern === '*' || prefixes.some(each => matchesGlob(each, pattern))) isIncluded = line.startsWith('!')
  }
  return isIncluded
}

describe('the container image', () => {
  it('has the Node.js version that the tests run on', () => {
    expect(/^ARG BASE=(\S+)$/m.exec(dockerfile)?.[1]).toBe(`node:${devDependencies.node}-bookworm-slim`)
    for (const base of dockerfile.match(/^FROM .*/gm)!) expect(base).toMatch(/ \$\{BASE\}/)
  })

  it('runs as another user than root, with a health check and SIGTERM as the stop signal', () => {
    const last = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
    expect(last).toMatch(/^USER node$/m)
    expect(last).toMatch(/^STOPSIGNAL SIGTERM$/m)
    expect(last).toMatch(/^HEALTHCHECK .*CMD \["node", "\/opt\/kith\/node_modules\/kith\/scripts\/healthcheck\.js"\]$/m)
  })

  it('is built from all that the packages are made of, and from no secret, test or package of this machine', async () => {
    const tracked = (await promisify(execFile)('git', ['ls-files'], { cwd: checkout })).stdout.split('\n')
    const made = tracked.filter(
      path => /^(client|console|docs|src|cli|transfer|migrations)\//.test(path) && !path.endsWith('.test.ts'),
    )
    const others = [
      'scripts/pack.ts',
      'tsconfig.build.json',
      'ops/kith',
      'LICENSE',
      'README.md',
      'CHANGELOG.md',
      'SECURITY.md',
    ]
    expect([...made, ...others].filter(path => !isInBuildContext(path))).toEqual([])
    const left = [
      'ops/secrets/database_password',
      'node_modules/pg/package.json',
      'client/dist/index.js',
      '.git/config',
    ]
    expect([...left, 'src/values/json.test.ts', '.kith/master.key'].filter(isInBuildContext)).toEqual([])
  })

  it('starts kith with the flags of npm start', () => {
    expect(/exec node (.*?) "\$home/.exec(read('ops/kith'))?.[1]?.split(' ')).toEqual(startFlags)
    expect(/^#!\/usr\/bin\/env -S node (.*)$/m.exec(read('cli/kith.js'))?.[1]?.split(' ')).toEqual(startFlags)
  })
})

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
    await mkdir(join(installed, 'node_modules'), { recursive: true })
    await symlink(checkout, join(installed, 'node_modules', 'kith'))
    await writeFile(path, unit.replaceAll('/opt/kith', installed))
    const { stderr } = await promisify(execFile)('/usr/bin/systemd-analyze', ['verify', path])
    expect(stderr).toBe('')
  })
})
