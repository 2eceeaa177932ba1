// Asks the registry for known vulnerabilities of the packages in package-lock.json, and for their signatures:
//   node scripts/audit.ts [--required]
// A finding fails, unless ops/audit-exceptions.json has it with a reason and an end. A registry that does not answer fails only with
// --required, which a release uses: a machine without it can then still run the gate.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A finding that is accepted until a date. The `id` is that of the advisory (GHSA-…), or `name@version` of a package without a valid signature. */
type Exception = { id: string; reason: string; until: string }
type Finding = { id: string; text: string }
/** The findings of npm, or the reason why the registry did not answer. */
type Answer = { findings: Finding[] } | { silence: string }

type Advisory = { name: string; title: string; url: string; severity: string; range: string }
type AuditReport = { vulnerabilities: Record<string, { via: (string | Advisory)[] }> }
type Signature = { name: string; version: string }
type SignatureReport = { invalid: Signature[]; missing: Signature[] }

const root = join(import.meta.dirname, '..')
const patienceMs = 120_000

/** Codes of npm and of Node.js for a registry that cannot be reached, or that has no such endpoint. */
const silentCodes = /^(E[45]\d\d|ENOTFOUND|EAI_AGAIN|ECONN\w+|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT)$/

/** Runs npm and returns the JSON that it prints. Throws an Error for a failure that is not the registry's. */
function runNpm(words: string[]): { report: unknown } | { silence: string } {
  const options = ['--json', '--fetch-retries=1', '--fetch-timeout=30000']
  const { stdout, stderr, error } = spawnSync('npm', [...words, ...options], {
    cwd: root,
    encoding: 'utf8',
    timeout: patienceMs,
    maxBuffer: 1 << 28,
  })
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'ETIMEDOUT')
    return { silence: `no answer within ${patienceMs / 1_000} s` }
  if (error) throw error
  let report: { error?: { code?: string; summary?: string }; message?: string; statusCode?: number }
  try {
    report = JSON.parse(stdout)
  } catch {
    throw new Error(`npm ${words.join(' ')} printed no JSON:\n${stdout}${stderr}`)
  }
  const { error: failure, message, statusCode } = report
  if (!failure) return { report }
  if (message !== undefined && (statusCode !== undefined || failure.summary === '')) return { silence: message }
  const summary = failure.summary ?? ''
  if (silentCodes.test(failure.code ?? '') || summary.includes('supported registry')) return { silence: summary }
  throw new Error(`npm ${words.join(' ')} failed: ${failure.code} ${summary}`)
}

function auditVulnerabilities(): Answer {
  const answer = runNpm(['audit'])
  if ('silence' in answer) return answer
  const { vulnerabilities } = answer.report as AuditReport
  const advisories = Object.values(vulnerabilities).flatMap(({ via }) => via.filter(each => typeof each !== 'string'))
  const byUrl = new Map(advisories.map(advisory => [advisory.url, advisory]))
  return {
    findings: [...byUrl.values()].map(({ name, title, url, severity, range }) => ({
      id: url.slice(url.lastIndexOf('/') + 1),
      text: `${severity}: ${name} ${range}: ${title}`,
    })),
  }
}

function auditSignatures(): Answer {
  const answer = runNpm(['audit', 'signatures'])
  if ('silence' in answer) return answer
  const { invalid, missing } = answer.report as SignatureReport
  const toFinding = (word: string) => (each: Signature) => ({
    id: `${each.name}@${each.version}`,
    text: `its signature is ${word}`,
  })
  return { findings: [...invalid.map(toFinding('invalid')), ...missing.map(toFinding('missing'))] }
}

/** The exceptions that hold today. Adds a problem for each that is incomplete or past its end. */
function readExceptions(file: string, problems: string[]): Map<string, Exception> {
  const today = new Date().toISOString().slice(0, 10)
  const exceptions = JSON.parse(readFileSync(file, 'utf8')) as Exception[]
  const holding = exceptions.filter(({ id, reason, until }) => {
    const isComplete = Boolean(id) && Boolean(reason?.trim()) && /^\d{4}-\d\d-\d\d$/.test(until ?? '')
    if (!isComplete) problems.push(`exception ${id}: it needs an id, a reason, and an end such as 2027-01-31`)
    else if (until < today) problems.push(`exception ${id}: it ended on ${until}. Update the package, or decide again.`)
    return isComplete && until >= today
  })
  return new Map(holding.map(exception => [exception.id, exception]))
}

const args = process.argv.slice(2)
const isRequired = args.includes('--required')
const [file = join(root, 'ops/audit-exceptions.json')] = args.filter(word => !word.startsWith('--'))
const problems: string[] = []
const exceptions = readExceptions(file, problems)
const audits = [
  { what: 'vulnerabilities', answer: auditVulnerabilities() },
  { what: 'signatures', answer: auditSignatures() },
]
for (const { what, answer } of audits) {
  if ('silence' in answer) {
    console.log(`${what}: not checked, because the registry does not answer: ${answer.silence}`)
    if (isRequired) problems.push(`${what}: not checked, and --required demands it`)
    continue
  }
  const unknown = answer.findings.filter(({ id }) => !exceptions.has(id))
  console.log(
    `${what}: ${answer.findings.length} findings, ${answer.findings.length - unknown.length} of them are exceptions`,
  )
  problems.push(...unknown.map(({ id, text }) => `${what}: ${id}: ${text}`))
}
for (const problem of problems) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0
