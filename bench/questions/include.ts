import { median } from '../measure.ts'
import { alternate, type QuestionsContext } from './questions-part.ts'

const maxCost = 2.5

/** Compares pages that include a relationship with pages that do not, by HTTP. */
export async function measure({ ask, print, requests }: QuestionsContext): Promise<void> {
  const list = (body: object) => () => ask('POST', '/v1/people/list', body)
  for (const size of [50, 500]) {
    const page = { cursor_configuration: { size } }
    const [plain, included] = await alternate(requests, [list(page), list({ ...page, include: ['employer'] })])
    const cost = median(included!) / median(plain!)
    print(
      `  a page of ${size} with the employers: p50 ${median(included!).toFixed(2)} ms, without ${median(plain!).toFixed(2)} ms, ` +
        `${cost.toFixed(2)} times the cost (at most ${maxCost}): ${cost <= maxCost ? 'met' : 'NOT MET'}`,
    )
  }
}
