import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { transformerStyleToClass } from '@shikijs/transformers'
import { defineConfig, type MarkdownOptions } from 'vitepress'
import { addressOf, anchorOf, checkout, fileOf, navigation, pageOf, titleOf } from './navigation.ts'

// The content security policy of the site allows no style attributes, so the colours of code are classes.
const styleToClass = transformerStyleToClass()
const codeStyle = () =>
  `assets/code.${createHash('sha256').update(styleToClass.getCSS()).digest('hex').slice(0, 8)}.css`

/** Lets links between files lead to the pages of the site. A link to a file that is no page becomes its text. */
const linkPages: MarkdownOptions['config'] = md => {
  const { code_inline: renderCode } = md.renderer.rules
  // Vue takes two braces as the beginning of an expression, even in code.
  md.renderer.rules.code_inline = (...parts) => renderCode!(...parts).replaceAll('{{', '&#123;&#123;')
  md.core.ruler.push('link-pages', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.attrGet('href')
      if (token.type !== 'link_open' || !href || /^(\w+:|#|\/)/.test(href)) continue
      const [path, anchor] = href.split('#')
      const file = posix.join(posix.dirname(fileOf(env.relativePath.replace(/\.md$/, ''))), path!)
      const page = pageOf(existsSync(join(checkout, file, 'README.md')) ? `${file}/README.md` : file)
      if (page) token.attrSet('href', addressOf(page) + (anchor ? `#${anchor}` : ''))
      else token.attrs = []
    }
  })
}

export default defineConfig({
  title: 'kith',
  description: 'The documentation of kith, a self-hosted contact and record data service.',
  base: '/docs/',
  srcDir: '..',
  srcExclude: ['!(docs|client)/**/*', '!(CHANGELOG|SECURITY).md', 'client/!(README.md)', 'client/*/**'],
  rewrites: id => `${pageOf(id) ?? id.replace(/\.md$/, '')}.md`.replace(/README\.md$/, 'index.md'),
  outDir: 'dist',
  cleanUrls: true,
  // Without it, the theme adds a style element to each page, which the policy refuses.
  appearance: { disableTransition: false },
  metaChunk: true,
  markdown: {
    anchor: { slugify: anchorOf },
    codeTransformers: [styleToClass],
    config: linkPages,
  },
  themeConfig: {
    nav: [{ text: 'Try the API', link: '/api', target: '_self' }],
    sidebar: navigation.map(({ text, pages }, index) => ({
      text,
      collapsed: index > 2,
      items: pages.map(page => ({ text: titleOf(page), link: addressOf(page) })),
    })),
    outline: { level: [2, 3] },
    search: { provider: 'local' },
    notFound: {
      title: 'There is no such page',
      quote: 'Search for it, or begin at the start.',
      linkText: 'To the start',
    },
  },
  vite: { build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 2_000 } },
  transformHead: () => [['link', { rel: 'stylesheet', href: `/docs/${codeStyle()}` }]],
  transformHtml: code => code.replace(/ style="(--vp-vh:0px|position:relative);"/g, ''),
  // The service decompresses a file for a client that reads no brotli, so the package has each text once.
  buildEnd({ outDir }) {
    writeFileSync(join(outDir, codeStyle()), styleToClass.getCSS())
    for (const name of globSync('**/*.{html,js,css,json}', { cwd: outDir })) {
      writeFileSync(join(outDir, `${name}.br`), brotliCompressSync(readFileSync(join(outDir, name))))
      rmSync(join(outDir, name))
    }
  },
})
