/** Normalizes the name of a column, or a word: letter case, spaces, hyphens and underscores make no difference. */
export const normalize = (name: string) =>
  name
    .trim()
    .toLowerCase()
    .replace(/[\s_-]+/g, ' ')
