import { execFile } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, it } from 'vitest'
import { runInProcess, useFolder } from '../test/support/command.ts'
import { useService } from '../test/support/service.ts'
import { useShop } from '../test/support/shop.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const compiler = join(root, 'node_modules/typescript/bin/tsc')

const service = useService()
const directory = useFolder()
let environment: Record<string, string>

const organization = useShop(service)
const { client } = organization
beforeEach(async () => {
  environment = { KITH_URL: service.address, KITH_TOKEN: organization.token }
  await rm(fileOf('schema.ts'), { force: true })
})

const fileOf = (name: string) => join(directory, name)

const codegen = (...args: string[]) =>
  runInProcess(['codegen', '--output', 'schema.ts', ...args], environment, directory)

async function declareShop() {
  const { stacks, attributes } = client.schema
  await stacks.create({ key: 'orders', kind: 'item', name: 'Orders */ export const broken = 1 /*' })
  await stacks.create({ key: 'visits', kind: 'event' })
  await attributes.create({ key: 'total', owner: 'orders', type: 'number', description: 'In euros,\nwith taxes.' })
  await attributes.create({ key: 'buyer', owner: 'orders', type: 'person' })
  await attributes.create({
    key: 'orders',
    owner: 'people',
    type: 'stack',
    target_stack: 'orders',
    cardinality: 'many',
  })
  const old = await attributes.create({ key: 'old', owner: 'orders', type: 'text' })
  await attributes.patch(old.id, { state: 'archived' })
}

/** Compiles a module with a typed client, and expects that exactly the wrong lines are rejected. */
async function expectRejected({ right, wrong }: { right: string; wrong: string[] }): Promise<void> {
  const head = `import { createClient } from '@kith/client'
import type { Schema } from './schema.ts'
const client = createClient<Schema>({ url: '', token: '' })
${right}
`
  await writeFile(fileOf('use.ts'), `${head}${wrong.join('\n')}\n`)
  await writeFile(fileOf('package.json'), '{"type":"module"}')
  const compilerOptions = {
    types: ['node'],
    typeRoots: [join(root, 'node_modules/@types')],
    paths: { '@kith/client': [join(root, 'client/index.ts')] },
  }
  const settings = { extends: join(root, 'tsconfig.json'), compilerOptions, include: [], files: ['use.ts'] }
  await writeFile(fileOf('tsconfig.json'), JSON.stringify(settings))
  const compiled = promisify(execFile)(process.execPath, [compiler, '-p', '.'], { cwd: directory })
  const { stdout } = await compiled.catch(error => ({ stdout: error.stdout || error.message }))
  const first = head.split('\n').length
  const lines = [...stdout.matchAll(/^(?:use\.ts\((\d+),|\S)/gm)].map(([found, line]) => (line ? Number(line) : found))
  expect(lines, stdout).toEqual(wrong.map((_, index) => first + index))
}

describe('kith codegen', () => {
  it('writes the declared types without archived attributes, and escapes text that could be code', async () => {
    await declareShop()
    expect(await codegen()).toEqual({ code: 0, stdout: '', stderr: 'Wrote schema.ts.\n' })
    const written = await readFile(fileOf('schema.ts'), 'utf8')
    expect(written.slice(written.indexOf('export type'))).toBe(`export type Schema = {
  people: {
    orders: { type: 'stack'; cardinality: 'many'; target: 'orders' }
  }
  stacks: {
    /** Orders *\\/ export const broken = 1 /* */
    orders: {
      kind: 'item'
      attributes: {
        buyer: { type: 'person'; cardinality: 'one' }
        /** total: In euros, with taxes. */
        total: { type: 'number'; cardinality: 'one' }
      }
    }
    visits: {
      kind: 'event'
      attributes: Record<never, never>
    }
  }
}
`)
  })

  it('makes the compiler reject values of another type and accept correct ones', async () => {
    await declareShop()
    await codegen()
    const right = `
      client.stack('orders').create({ attribute_values: { total: 10, buyer: 'ada', old: 1, undeclared: [true] } })
      client.people.create({ attribute_values: { orders: ['o-1', 2] } })
      client.stack('visits').create({ attribute_values: { page: '/' } })`
    const wrong = [
      `client.stack('orders').create({ attribute_values: { total: 'x' } })`,
      `client.stack('orders').patch('o', { attribute_values: { buyer: true } })`,
      `client.stack('visits').patch('v', {})`,
      `client.stack('nothing')`,
    ]
    await expectRejected({ right, wrong })
  })

  it('makes the compiler reject a written value that an enum does not allow', async () => {
    await client.schema.stacks.create({ key: 'orders', kind: 'item' })
    const shared = { owner: 'orders', type: 'text', enum: ['open', "it's \\ do\u2028ne"] } as const
    await client.schema.attributes.create({ ...shared, key: 'status', enum: [...shared.enum] })
    await client.schema.attributes.create({ ...shared, key: 'marks', enum: [...shared.enum], cardinality: 'many' })
    await codegen()
    const right = `
      client.stack('orders').create({ attribute_values: { status: 'open', marks: ["it's \\\\ do\\u2028ne"] } })
      client.stack('orders').get('o').then(({ attribute_values }) => attribute_values.status?.length)`
    const wrong = [
      `client.stack('orders').create({ attribute_values: { status: 'opened' } })`,
      `client.stack('orders').patch('o', { attribute_values: { marks: ['open', 'closed'] } })`,
    ]
    await expectRejected({ right, wrong })
  })

  it('makes the compiler reject a create without a required attribute', async () => {
    await client.schema.stacks.create({ key: 'orders', kind: 'item' })
    await client.schema.attributes.create({ owner: 'orders', key: 'total', type: 'number', required: true })
    await client.schema.attributes.create({ owner: 'orders', key: 'note', type: 'text' })
    await codegen()
    const written = await readFile(fileOf('schema.ts'), 'utf8')
    expect(written).toContain("total: { type: 'number'; cardinality: 'one'; required: true }\n")
    const right = `
      client.stack('orders').create({ attribute_values: { total: 10 } })
      client.stack('orders').patch('o', { attribute_values: { note: null } })`
    const wrong = [
      `client.stack('orders').create({ external_id: 'o' })`,
      `client.stack('orders').create({ attribute_values: { note: 'x' } })`,
      `client.stack('orders').patch('o', { attribute_values: { total: null } })`,
    ]
    await expectRejected({ right, wrong })
  })

  it('makes the compiler reject a filter with a misspelt key or an operand of another type', async () => {
    await declareShop()
    await codegen()
    const right = `
      const rich = { 'attribute_values.total': { $gte: 10 } } as const
      client.people.filter({ 'attribute_values.orders': { $some: { ...rich, 'attribute_values.buyer': 'ada' } } })
      client.stack('orders').filter({ $not: { ...rich, state: 'active' } }, { strict: true })`
    const wrong = [
      `client.stack('orders').filter({ 'attribute_values.totl': 10 })`,
      `client.stack('orders').filter({ 'attribute_values.total': '10' })`,
      `client.stack('orders').filter({ 'attribute_values.old': 'x' })`,
      `client.people.filter({ 'attribute_values.orders': { $none: { 'attribute_values.totl': 1 } } })`,
      `client.people.filter({ 'attribute_values.orders': { $none: { 'attribute_values.buyer': 7 } } })`,
      `client.people.filter({ 'attribute_values.orders': { $some: { 'attribute_values.buyer': { $some: { total: 1 } } } } })`,
    ]
    await expectRejected({ right, wrong })
  })

  it('writes a file that compiles for an organization without definitions', async () => {
    await codegen()
    const right = 'client.people.create({ attribute_values: { any: 1 } })'
    await expectRejected({ right, wrong: [`client.stack('orders')`] })
  })

  it('--check writes nothing and exits with 1 if the file is stale or missing, else with 0', async () => {
    expect(await codegen('--check')).toMatchObject({ code: 1, stderr: expect.stringMatching(/^schema\.ts is stale/) })
    await codegen()
    expect(await codegen('--check')).toEqual({ code: 0, stdout: '', stderr: 'schema.ts is up to date.\n' })
    const before = await readFile(fileOf('schema.ts'), 'utf8')
    await client.schema.stacks.create({ key: 'orders', kind: 'item' })
    expect(await codegen('--check')).toMatchObject({ code: 1, stdout: '' })
    expect(await readFile(fileOf('schema.ts'), 'utf8')).toBe(before)
  })

  it('prefers the options --url and --token to the environment', async () => {
    const options = ['--url', environment.KITH_URL!, '--token', environment.KITH_TOKEN!]
    environment = { KITH_URL: 'http://nowhere.invalid', KITH_TOKEN: 'none' }
    expect(await codegen(...options)).toMatchObject({ code: 0 })
  })

  it.each([
    ['no service on this machine', { KITH_URL: '', PORT: '1' }, 1, /127\.0\.0\.1:1 cannot be reached/],
    ['no token', { KITH_TOKEN: '' }, 2, /KITH_TOKEN/],
    ['an invalid token', { KITH_TOKEN: 'none' }, 1, /token/],
    ['an invalid address', { KITH_URL: 'nowhere' }, 2, /not a URL/],
  ])('reports %s in one line', async (_, change, exitCode, pattern) => {
    environment = { ...environment, ...change }
    const { code, stdout, stderr } = await codegen()
    expect({ code, stdout }).toEqual({ code: exitCode, stdout: '' })
    expect(stderr).toMatch(/^[^\n]+\n$/)
    expect(stderr).toMatch(pattern)
  })
})
