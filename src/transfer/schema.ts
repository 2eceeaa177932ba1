import { type TSchema, Type } from 'typebox'

/** What the query of an import may hold. */
export const importQuery = Type.Object(
  {
    dry_run: Type.Optional(Type.Boolean({ description: 'Decide everything, and store nothing.' })),
    create_only: Type.Optional(
      Type.Boolean({ description: 'Refuse a line that would change an entity that exists, placeholders excepted.' }),
    ),
  },
  { additionalProperties: false },
)

/** Body of an export; `format` is that of the kind's identifiers. */
export const exportBody = (format: 'uuid' | 'object-id'): TSchema =>
  Type.Object(
    { after_id: Type.Optional(Type.String({ format, description: 'Only what comes behind this identifier.' })) },
    { additionalProperties: false },
  )

const count = (description: string) => Type.Integer({ minimum: 0, description })

const counts = {
  received: count('Lines so far, but for blank ones.'),
  created: count('New, or completed where a placeholder stood.'),
  updated: count('Merged into what stood.'),
  unchanged: count('Nothing to change.'),
  failed: count('Refused.'),
}

const details = Type.Array(Type.Object({ path: Type.String(), message: Type.String() }))

const refusedLine = Type.Object({
  line: Type.Integer({ minimum: 1, description: 'Its place in the body, blank lines counted.' }),
  error: Type.String({ description: 'The error word, as a request of its own would have it.' }),
  message: Type.String(),
  details,
})

const lineNumber = Type.Integer({ minimum: 1 })
const refused_lines = Type.Object({
  refused_lines: Type.Array(Type.Array(lineNumber, { minItems: 2, maxItems: 2 }), {
    description:
      'Behind the first 10,000 refusals, or 1 MiB of them: further lines that are refused, without their reasons. ' +
      'The first and the last line of each run of them.',
  }),
})

const progressLine = Type.Object({ progress: Type.Object(counts) })

const faultLine = Type.Object({
  error: Type.String(),
  message: Type.String(),
  details,
  request_id: Type.String(),
  outcome: Type.Optional(
    Type.Literal('unknown', { description: 'Lines that `progress` does not count may have been done.' }),
  ),
  progress: Type.Object(counts),
})

/** A line of the answer to an import. The last is the counts, or what ended it before. */
export const importAnswer = Type.Union([Type.Object(counts), progressLine, refusedLine, refused_lines, faultLine], {
  title: 'ImportLine',
  examples: [{ received: 2, created: 1, updated: 0, unchanged: 0, failed: 1 }],
})
