import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const script = join(import.meta.dirname, 'audit.ts')
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kith-audit-'))
  // Prints what the test says that the registry answers: to `npm audit`, and to `npm audit signatures`.
  const npm = `#!/bin/sh
if [ "$2" = signatures ]; then printf %s "$SIGNATURES"; else printf %s "$VULNERABILITIES"; fi
exit 1
`
  await writeFile(join(folder, 'npm'), npm)
  await chmod(join(folder, 'npm'), 0o755)
})
afterAll(() => rm(folder, { recursive: true }))

const advisory = {
  name: 'left',
  title: 'Reads too far',
  url: 'https://advisories.example/GHSA-aaaa-bbbb-cccc',
  severity: 'high',
  range: '<1.2.3',
}
const noVulnerabilities = { auditReportVersion: 2, vulnerabilities: {} }
/** `right` depends on `left`, so npm reports both for one advisory. */
const oneVulnerability = {
  auditReportVersion: 2,
  vulnerabilities: { left: { via: [advisory] }, right: { via: ['left'] } },
}
const validSignatures = { invalid: [], missing: [] }
const silentAudit = { message: '405 Method Not Allowed', statusCode: 405, error: { summary: '', detail: '' } }
const silentSignatures = { error: { code: 'ENOTFOUND', summary: 'getaddrinfo ENOTFOUND registry.invalid' } }

type Given = { vulnerabilities?: unknown; signatures?: unknown; exceptions?: unknown; words?: string[] }

async function audit({
  vulnerabilities = noVulnerabilities,
  signatures = validSignatures,
  exceptions = [],
  words = [],
}: Given) {
  const file = join(folder, 'exceptions.json')
  await writeFile(file, JSON.stringify(exceptions))
  const PATH = `${folder}${delimiter}${dirname(process.execPath)}${delimiter}/usr/bin:/bin`
  const env = { PATH, VULNERABILITIES: JSON.stringify(vulnerabilities), SIGNATURES: JSON.stringify(signatures) }
  return new Promise<{ code: number; stdout: string; stderr: string }>(resolve =>
    execFile(process.execPath, [script, file, ...words], { env }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    ),
  )
}

const exception = (until: string) => ({ id: 'GHSA-aaaa-bbbb-cccc', reason: 'kith never calls it', until })

describe('npm run audit', () => {
  it('passes without a finding', async () => {
    const { code, stdout } = await audit({})
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout:
        'vulnerabilities: 0 findings, 0 of them are exceptions\nsignatures: 0 findings, 0 of them are exceptions\n',
    })
  })

  it('fails for a known vulnerability, once for all packages that depend on it', async () => {
    const { code, stderr } = await audit({ vulnerabilities: oneVulnerability })
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'vulnerabilities: GHSA-aaaa-bbbb-cccc: high: left <1.2.3: Reads too far\n',
    })
  })

  it.each(['invalid', 'missing'])('fails for a signature that is %s', async word => {
    const { code, stderr } = await audit({
      signatures: { ...validSignatures, [word]: [{ name: 'left', version: '1.2.2' }] },
    })
    expect({ code, stderr }).toEqual({ code: 1, stderr: `signatures: left@1.2.2: its signature is ${word}\n` })
  })

  it('accepts a finding until the end of its exception', async () => {
    const accepted = await audit({ vulnerabilities: oneVulnerability, exceptions: [exception('2999-12-31')] })
    expect(accepted.code).toBe(0)
    expect(accepted.stdout).toContain('vulnerabilities: 1 findings, 1 of them are exceptions')
    const ended = await audit({ vulnerabilities: oneVulnerability, exceptions: [exception('2026-01-01')] })
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain('GHSA-aaaa-bbbb-cccc: it ended on 2026-01-01')
  })

  it('fails for an exception past its end, and for one without a reason, also without a finding', async () => {
    expect((await audit({ exceptions: [exception('2026-01-01')] })).code).toBe(1)
    expect((await audit({ exceptions: [{ ...exception('2999-12-31'), reason: ' ' }] })).code).toBe(1)
    expect((await audit({ exceptions: [exception('soon')] })).code).toBe(1)
  })

  it('says that nothing was checked if the registry does not answer, and fails with --required', async () => {
    const silent = { vulnerabilities: silentAudit, signatures: silentSignatures }
    const { code, stdout } = await audit(silent)
    expect(code).toBe(0)
    expect(stdout).toContain('vulnerabilities: not checked, because the registry does not answer: 405')
    expect(stdout).toContain('signatures: not checked, because the registry does not answer: getaddrinfo ENOTFOUND')
    expect((await audit({ ...silent, words: ['--required'] })).code).toBe(1)
  })

  it('fails if npm fails by itself', async () => {
    const noLock = { error: { code: 'ENOLOCK', summary: 'This command requires an existing lockfile.' } }
    const { code, stderr } = await audit({ vulnerabilities: noLock })
    expect(code).toBe(1)
    expect(stderr).toContain('ENOLOCK')
  })
})
