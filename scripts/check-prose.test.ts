import { expect, it } from 'vitest'
import { checkProse, commentsOf } from './check-prose.ts'

const source = (text: string) => ({ path: 'src/people/people.ts', text })

it('reads consecutive comment lines as one block, and docstrings without comment marks', () => {
  const text = `const one = 1\n// A reason,\n// on two lines.\nconst two = 2\n/**\n * A function.\n * Throws.\n */\nf() // not a block\n`
  expect(commentsOf(source(text))).toEqual([
    { path: 'src/people/people.ts', line: 2, text: 'A reason, on two lines.' },
    { path: 'src/people/people.ts', line: 5, text: 'A function. Throws.' },
  ])
})

it.each([
  'Whoever comes next finds room.',
  'The set fails. Who waits is told.',
  'Of a set only the first is sent.',
  'Every write, be it of one or of many, is a set.',
])('refuses the comment "%s"', comment => {
  expect(checkProse([source(`// ${comment}\n`)])).toHaveLength(1)
})

it.each(['The client retries after one second.', 'What does a reader expect here?', 'Counts what is sent.'])(
  'accepts the comment "%s"',
  comment => {
    expect(checkProse([source(`// ${comment}\n`)])).toEqual([])
  },
)
