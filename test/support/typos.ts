import fc from 'fast-check'

/** The letters of generated words. They are few, so that words are similar to each other. */
export const typoLetters = 'abcdeflnor'

/** Generates what becomes of a word by one typo: a missing, additional or wrong letter, or two in the wrong order. */
export const withTypo = (from: string) =>
  fc
    .tuple(fc.nat({ max: from.length - 1 }), fc.constantFrom(...typoLetters), fc.nat({ max: 3 }))
    .map(([at, letter, kind]) => {
      const [before, own, after] = [from.slice(0, at), from[at]!, from.slice(at + 1)]
      return [
        before + after,
        before + letter + own + after,
        before + letter + after,
        before + (after[0] ?? '') + own + after.slice(1),
      ][kind]!
    })
