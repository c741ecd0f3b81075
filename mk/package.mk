# Packages. make deb: cairn, libcairn0, libcairn-dev and python3-cairn for Debian, in build/deb; make package-test tries them in a system
# of their own (mmdebstrap, root).
.PHONY: deb package-test
DEB_TREE := build/deb/cairn-$(LIBRARY_VERSION)
# What git knows, copied, so that neither the tree nor what stands beside it is written to. Times come from debian/changelog.
deb:
	@./setup packages
	@rm -rf build/deb && mkdir -p $(DEB_TREE)
	@git ls-files -z | xargs -0 cp --parents -a -t $(DEB_TREE)
	@[ ! -e $(NPM_STAMP) ] || cp -a web/node_modules $(DEB_TREE)/web/
	@cd $(DEB_TREE) && { dpkg-buildpackage -b -us -uc >../build.log 2>&1 || { tail -n 40 ../build.log; exit 1; }; }
	@rm -rf $(DEB_TREE)
	@lintian --fail-on error,warning --tag-display-limit 0 --allow-root build/deb/*.changes
	@ls -l build/deb/*.deb

package-test:
	@ls build/deb/cairn_*.deb >/dev/null 2>&1 || $(MAKE) deb
	@test/package/deb_test build/deb
