import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { root } from '../scripts/source.ts'

const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** How many requirements of level 1 and 2 each section of OWASP ASVS 5.0.0 has, and the numbers of level 3, which are left out. */
const sections: Record<string, { last: number; level3: number[] }> = {
  '1.1': { last: 2, level3: [] },
  '1.2': { last: 9, level3: [] },
  '1.3': { last: 11, level3: [] },
  '1.4': { last: 3, level3: [] },
  '1.5': { last: 2, level3: [] },
  '2.1': { last: 3, level3: [] },
  '2.2': { last: 3, level3: [] },
  '2.3': { last: 4, level3: [] },
  '2.4': { last: 1, level3: [] },
  '3.2': { last: 2, level3: [] },
  '3.3': { last: 4, level3: [] },
  '3.4': { last: 6, level3: [] },
  '3.5': { last: 5, level3: [] },
  '3.7': { last: 2, level3: [] },
  '4.1': { last: 3, level3: [] },
  '4.2': { last: 1, level3: [] },
  '4.3': { last: 2, level3: [] },
  '4.4': { last: 4, level3: [] },
  '5.1': { last: 1, level3: [] },
  '5.2': { last: 3, level3: [] },
  '5.3': { last: 2, level3: [] },
  '5.4': { last: 3, level3: [] },
  '6.1': { last: 3, level3: [] },
  '6.2': { last: 12, level3: [] },
  '6.3': { last: 4, level3: [] },
  '6.4': { last: 4, level3: [] },
  '6.5': { last: 5, level3: [] },
  '6.6': { last: 3, level3: [] },
  '6.8': { last: 4, level3: [] },
  '7.1': { last: 3, level3: [] },
  '7.2': { last: 4, level3: [] },
  '7.3': { last: 2, level3: [] },
  '7.4': { last: 5, level3: [] },
  '7.5': { last: 2, level3: [] },
  '7.6': { last: 2, level3: [] },
  '8.1': { last: 2, level3: [] },
  '8.2': { last: 3, level3: [] },
  '8.3': { last: 1, level3: [] },
  '8.4': { last: 1, level3: [] },
  '9.1': { last: 3, level3: [] },
  '9.2': { last: 4, level3: [] },
  '10.1': { last: 2, level3: [] },
  '10.2': { last: 2, level3: [] },
  '10.3': { last: 4, level3: [] },
  '10.4': { last: 11, level3: [] },
  '10.5': { last: 5, level3: [] },
  '10.6': { last: 2, level3: [] },
  '10.7': { last: 3, level3: [] },
  '11.1': { last: 2, level3: [] },
  '11.2': { last: 3, level3: [] },
  '11.3': { last: 3, level3: [] },
  '11.4': { last: 4, level3: [] },
  '11.5': { last: 1, level3: [] },
  '11.6': { last: 1, level3: [] },
  '12.1': { last: 3, level3: [] },
  '12.2': { last: 2, level3: [] },
  '12.3': { last: 4, level3: [] },
  '13.1': { last: 1, level3: [] },
  '13.2': { last: 5, level3: [] },
  '13.3': { last: 2, level3: [] },
  '13.4': { last: 5, level3: [] },
  '14.1': { last: 2, level3: [] },
  '14.2': { last: 4, level3: [] },
  '14.3': { last: 3, level3: [] },
  '15.1': { last: 3, level3: [] },
  '15.2': { last: 3, level3: [] },
  '15.3': { last: 7, level3: [] },
  '16.1': { last: 1, level3: [] },
  '16.2': { last: 5, level3: [] },
  '16.3': { last: 4, level3: [] },
  '16.4': { last: 3, level3: [] },
  '16.5': { last: 3, level3: [] },
  '17.1': { last: 1, level3: [] },
  '17.2': { last: 4, level3: [] },
  '17.3': { last: 2, level3: [] },
}

const required = Object.entries(sections).flatMap(([section, { last, level3 }]) =>
  Array.from({ length: last }, (_, index) => index + 1)
    .filter(number => !level3.includes(number))
    .map(number => `${section}.${number}`),
)

const verdicts = ['met', 'partly', 'operator', 'not met', 'not applicable']
/** The requirements of a first cell: numbers, and ranges within a section. */
const numbersOf = (cell: string) =>
  cell.split(', ').flatMap(range => {
    const [first, last = first] = range.split(' to ')
    return required.slice(required.indexOf(first!), required.indexOf(last!) + 1)
  })
const rows = [
  ...read('docs/security-asvs.md').matchAll(/^\| (\d+\.\d+\.\d[\d., to]*) \| ([^|]+) \|(?: ([^|]+) \| (.+?) \|)?$/gm),
].flatMap(([row, cell, , verdict = 'not applicable', how = '']) =>
  numbersOf(cell!).map(number => ({ row, number, verdict, how })),
)

const paths = /`((?:\.github|\.ci|bench|cli|client|console|docs|migrations|ops|scripts|src|test|transfer)\/[^`\s]+?)`/g

describe('docs/security-asvs.md', () => {
  it('has every requirement of level 1 and 2 once, each with a verdict', () => {
    expect(required.length).toBe(253)
    expect(rows.map(({ number }) => number).toSorted()).toEqual(required.toSorted())
    expect(rows.filter(({ verdict }) => !verdicts.includes(verdict)).map(({ row }) => row)).toEqual([])
  })

  it('names a file for each requirement that it calls met', () => {
    const unproven = rows.filter(({ verdict, how }) => verdict === 'met' && !/`[^`]+\.\w+`|\]\(/.test(how))
    expect(unproven.map(({ number }) => number)).toEqual([])
  })

  it('counts its verdicts at the top', () => {
    const counted = verdicts.map(verdict => `${rows.filter(row => row.verdict === verdict).length} ${verdict}`)
    expect(read('docs/security-asvs.md')).toContain(`${counted.join(', ')}.`)
  })
})

describe.each(['docs/security-asvs.md', 'SECURITY.md'])('%s', document => {
  it('names only files that exist', () => {
    const named = [...read(document).matchAll(paths)].map(([, path]) => path!)
    expect(named.length).toBeGreaterThan(20)
    expect(named.filter(path => !existsSync(join(root, path)) && globSync(path, { cwd: root }).length === 0)).toEqual(
      [],
    )
  })
})

type Step = { uses?: string; run?: string; with?: Record<string, unknown> }
type Workflow = { permissions: object; jobs: Record<string, { permissions: Record<string, string>; steps: Step[] }> }

describe('.github/workflows/release.yaml', () => {
  const text = read('.github/workflows/release.yaml')
  const { permissions, jobs }: Workflow = parse(text)
  const steps = Object.values(jobs).flatMap(job => job.steps)
  const { scripts, devDependencies } = JSON.parse(read('package.json'))

  it('pins every action by its commit', () => {
    const actions = steps.flatMap(({ uses }) => uses ?? [])
    expect(actions.length).toBeGreaterThan(8)
    expect(actions.filter(action => !/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/.test(action))).toEqual([])
  })

  it('gives each job the permissions that it names, and only the last one writes to the repository', () => {
    expect(permissions).toEqual({})
    const writers = Object.keys(jobs).filter(name => jobs[name]!.permissions.contents === 'write')
    expect(writers).toEqual(['release'])
    expect(text).not.toMatch(/write-all|pull_request_target/)
  })

  it('runs commands that exist, on the Node.js of the tests', () => {
    const commands = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name!)
    expect(commands).toEqual(expect.arrayContaining(['test:system', 'test:packed', 'audit', 'secrets', 'pack', 'sbom']))
    expect(commands.filter(name => !(name in scripts))).toEqual([])
    const versions = steps.flatMap(each => each.with?.['node-version'] ?? [])
    expect(new Set(versions)).toEqual(new Set([devDependencies.node]))
  })
})
