import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '..')
const read = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'))

type License = { expression?: string; license?: { id?: string; name?: string } }
type Component = { group?: string; name: string; version: string; licenses?: License[] }

/** Licences that ask for no more than their text beside what is shipped. */
const permissive = /^(MIT|ISC|BSD-[23]-Clause|Apache-2\.0|0BSD|BlueOak-1\.0\.0|Unlicense)( OR .*)?$/

it('npm run sbom lists every production dependency and the libraries of the console, all under permissive licences, and no tool of the build', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kith-sbom-test-'))
  try {
    const file = join(folder, 'kith.cdx.json')
    execFileSync(process.execPath, [join(root, 'scripts/sbom.ts'), file], { stdio: ['ignore', 'ignore', 'inherit'] })
    const { bomFormat, specVersion, metadata, components, dependencies } = JSON.parse(readFileSync(file, 'utf8'))
    const { name, version, dependencies: direct, optionalDependencies, devDependencies } = read('package.json')
    expect([bomFormat, specVersion, metadata.component.name, metadata.component.version]).toEqual([
      ...['CycloneDX', '1.6', name, version],
    ])
    const listed = new Map(
      (components as Component[]).map(each => [each.group ? `${each.group}/${each.name}` : each.name, each]),
    )
    for (const [name, version] of Object.entries({ ...direct, ...optionalDependencies }))
      expect({ name, version: listed.get(name)?.version }).toEqual({ name, version })
    for (const name of ['react', 'react-dom', 'react-aria-components', 'scheduler', '@tanstack/react-router', 'uplot'])
      expect([...listed.keys()]).toContain(name)
    // The lock file marks what only the build and the tests use. All else is shipped, as a dependency of a dependency too.
    const locked = read('package-lock.json').packages as Record<string, { dev?: boolean; link?: boolean }>
    for (const name of [...Object.keys(devDependencies), 'vite'])
      if (locked[`node_modules/${name}`]!.dev) expect([...listed.keys()]).not.toContain(name)
    for (const [path, entry] of Object.entries(locked))
      if (path.startsWith('node_modules/') && !entry.dev && !entry.link)
        expect([...listed.keys()]).toContain(path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
    const licenceOf = ({ licenses: [first] = [] }: Component) =>
      first?.expression ?? first?.license?.id ?? first?.license?.name ?? 'none'
    expect([...listed].filter(([, each]) => !permissive.test(licenceOf(each))).map(([name]) => name)).toEqual([])
    const refs = new Set(dependencies.map(({ ref }: { ref: string }) => ref))
    expect(refs.size).toBe(components.length + 1)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
