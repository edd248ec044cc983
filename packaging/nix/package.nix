# For nixpkgs' callPackage, or by itself: nix-build packaging/nix. No test builds it: tests/packages/linters.sh has Nix read it.
{
  lib,
  stdenv,
  cmake,
  curl,
  isa-l,
  libjpeg_turbo,
  libpng,
  libyaml,
  openmpi,
  openssl,
  pkg-config,
  protobufc,
  python3,
  zlib,
}:

let
  # The version stands in one place.
  version = builtins.head (builtins.match ".*project\\(trireme VERSION ([0-9.]+) .*" (builtins.readFile ../../CMakeLists.txt));
in
stdenv.mkDerivation {
  pname = "trireme";
  inherit version;
  src = lib.cleanSource ../..;

  nativeBuildInputs = [
    cmake
    openmpi
    pkg-config
    protobufc
    python3
  ];
  buildInputs = [
    curl
    isa-l
    libjpeg_turbo
    libpng
    libyaml
    openmpi
    openssl
    protobufc
    zlib
  ];
  cmakeFlags = [
    "-DTRIREME_BUILD_TESTS=OFF"
    "-DTRIREME_PYTHON_DIR=${python3.sitePackages}"
  ];

  doInstallCheck = true;
  installCheckPhase = ''
    for n in 1 2; do
      $out/bin/trireme launch -n $n train mnist-quick --steps 20 --out runs/$n | grep '^hash' >hash.$n
    done
    cmp hash.1 hash.2
  '';

  meta = {
    description = "Trains neural networks in parallel, with the same weights each time";
    license = lib.licenses.asl20;
    mainProgram = "trireme";
    platforms = [
      "x86_64-linux"
      "aarch64-linux"
    ];
  };
}
