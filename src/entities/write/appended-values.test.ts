import fc from 'fast-check'
import { expect, it } from 'vitest'
import { someRuns } from '../../../test/support/runs.ts'
import { useService } from '../../../test/support/service.ts'
import { createShop } from '../../../test/support/shop.ts'

const service = useService()

/** Texts that the format of a COPY has to escape. Some of them end a COPY or are null in it. */
const text = fc.oneof(
  fc.constantFrom('\\', '\\.', '\\N', 'a\tb', 'a\nb', 'a\r\nb', '\\t', '"', "'", '😀é', '\u0001'),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
)
const trimmed = text.map(value => value.trim()).filter(value => value.isWellFormed() && !value.includes('\0'))

it('stores a new entity and the entry of its creation exactly as sent, whatever characters its values have', async () => {
  const { ok, renew } = await createShop(service)
  await fc.assert(
    fc.asyncProperty(
      trimmed,
      fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.oneof(trimmed, fc.array(trimmed))),
      async (first_name, attribute_values) => {
        await renew()
        const created = await ok('POST', '/v1/people', { first_name, attribute_values })
        const read = await ok('GET', `/v1/people/internal/${created.id}`)
        expect([read.first_name, read.attribute_values]).toEqual([first_name, attribute_values])
        const { items } = await ok('GET', `/v1/people/internal/${created.id}/history`)
        expect(items[0].after).toMatchObject({
          first_name,
          ...(Object.keys(attribute_values).length > 0 && { attribute_values }),
        })
      },
    ),
    someRuns(50),
  )
})
