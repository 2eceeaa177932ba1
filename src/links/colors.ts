/** The relative luminance of a color `#rrggbb`, from 0 to 1 (WCAG 2.2). */
function luminanceOf(color: string): number {
  const [red, green, blue] = [1, 3, 5].map(at => {
    const value = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
}

/** The contrast of two colors `#rrggbb`, from 1 to 21 (WCAG 2.2). */
export function contrastOf(one: string, other: string): number {
  const [dark, light] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => a - b)
  return (light! + 0.05) / (dark! + 0.05)
}

/** Black or white, whichever reads better on a color. The contrast is at least 4.58, and AA asks for 4.5. */
export const textColorOn = (color: string): string =>
  contrastOf(color, '#000000') >= contrastOf(color, '#ffffff') ? '#000000' : '#ffffff'
