import fc from 'fast-check'
import { expect, it } from 'vitest'
import { importLines, linesFrom } from '../../test/support/lines.ts'
import { someRuns } from '../../test/support/runs.ts'
import { type Organization, useService } from '../../test/support/service.ts'

const service = useService()
const path = '/v1/people/import?match=external_id,email,mobile'

const declareCode = ({ send }: Organization) =>
  send('POST', '/v1/schema/attributes', { owner: 'people', key: 'code', type: 'text', indexed: true, unique: true })

/** Lines of several sets. Most keys of a line belong to one person of the pool. */
function linesAmong(pool: number): fc.Arbitrary<object[]> {
  const number = fc.nat({ max: pool - 1 })
  const line = number.chain(own => {
    const key = fc.oneof({ weight: 7, arbitrary: fc.constant(own) }, { weight: 1, arbitrary: number })
    return fc.record(
      {
        external_id: key.map(n => `p${n}`),
        email: key.map(n => `p${n}@example.com`),
        mobile_number: key.map(n => `+39333${1_000_000 + n}`),
        attribute_values: key.map(n => ({ code: `c${n}` })),
      },
      { requiredKeys: [], noNullPrototype: true },
    )
  })
  const lines = fc.array(line, { minLength: 2_500, maxLength: 2_500, size: 'max' })
  return fc.noShrink(lines.map(all => all.map((body, index) => ({ ...body, last_name: `line ${index}` }))))
}

/** All people with their versions and aliases, in an order that does not depend on ids. */
async function statesOf(shop: Organization): Promise<string[]> {
  const rows = await service.sql(
    `select e.version, e.external_id, e.email, e.mobile_number, e.last_name, e.attributes,
       array(select a.external_id from aliases a where a.organization_id = $1 and a.person_id = e.id order by 1) as aliases
     from entities e where e.organization_id = $1`,
    [shop.id],
  )
  return rows.map(row => JSON.stringify(row)).toSorted()
}

it.each([448, 100])(
  'an import with match equals imports of %s lines one after the other, for lines that share people, keys, names and unique values',
  async size => {
    const failuresOf = (refused: { line: number; error: string }[], first = 0) =>
      refused.map(({ line, error }) => ({ line: first + line, error }))
    const run = fc.asyncProperty(fc.oneof(...[30, 300, 3_000].map(linesAmong)), async lines => {
      const [whole, parts] = [await service.organization(), await service.organization()]
      for (const organization of [whole, parts]) await declareCode(organization)
      const { refused } = await importLines(whole, path, linesFrom(lines))
      const expected: object[] = []
      for (let first = 0; first < lines.length; first += size) {
        const part = await importLines(parts, path, linesFrom(lines.slice(first, first + size)))
        expected.push(...failuresOf(part.refused, first))
      }
      expect(failuresOf(refused)).toEqual(expected)
      expect(await statesOf(whole)).toEqual(await statesOf(parts))
    })
    await fc.assert(run, someRuns(3))
  },
  240_000,
)
